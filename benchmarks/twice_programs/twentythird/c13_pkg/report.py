"""Merges raw coverage files and prints a report."""
import argparse
import ast
import glob
import json
import os

LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "geometry.py")


def load_reports(folder):
    reports = []
    for path in sorted(glob.glob(os.path.join(folder, "coverage-*.json"))):
        with open(path) as f:
            reports.append(json.load(f))
    return reports


def executable_lines(path):
    with open(path) as f:
        tree = ast.parse(f.read())
    table = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            table[node.name] = sorted({n.lineno for n in ast.walk(node) if isinstance(n, ast.stmt)} - {node.lineno})
    return table


def merge(reports):
    """Sum the counters; remember which suite covered a line first and what it added."""
    lines, first, gain = {}, {}, {}
    for report in reports:
        added = 0
        for name, entry in sorted(report["functions"].items()):
            first.setdefault(name, report["suite"])
            for line, count in entry["lines"].items():
                if int(line) not in lines:
                    added += 1
                lines[int(line)] = lines.get(int(line), 0) + count
        gain[report["suite"]] = added
    return lines, first, gain


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--temp-directory", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--min-gain", type=int, required=True)
    args = parser.parse_args()
    reports = load_reports(args.temp_directory)
    lines, first, gain = merge(reports)
    table = executable_lines(LIBRARY)
    covered = total = 0
    print("function     first suite  covered")
    for name, wanted in table.items():
        hit = [n for n in wanted if n in lines]
        covered, total = covered + len(hit), total + len(wanted)
        print(f"{name:12s} {first.get(name, '-'):12s} {len(hit)}/{len(wanted)}")
    print(f"lines: {covered}/{total} ({100 * covered / total:.1f} %)")
    for suite, added in gain.items():
        note = "" if added >= args.min_gain else "  (candidate for removal)"
        print(f"suite {suite} adds {added} lines{note}")
    with open(args.out, "w") as f:
        json.dump({"lines": {str(k): lines[k] for k in sorted(lines)}, "first": first, "gain": gain}, f, indent=1)


if __name__ == "__main__":
    main()
