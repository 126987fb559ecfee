"""Make a baseline of accepted problems and a summary from a report."""
import json
import sys
from collections import Counter

QUOTA = 40


def parse(path):
    with open(path) as fh:
        for line in fh:
            where, rest = line.rstrip("\n").split(": ", 1)
            name, number, column = where.rsplit(":", 2)
            code, text = rest.split(" ", 1)
            yield name, int(number), int(column), code, text


def build_baseline(problems):
    """Accept the first problems of each kind; later ones count as new."""
    accepted, new = {}, Counter()
    for name, number, _, code, _ in problems:
        entries = accepted.setdefault(code, [])
        if len(entries) < QUOTA:
            entries.append(f"{name}:{number}")
        else:
            new[name] += 1
    return accepted, new


def main():
    report, target = sys.argv[1:3]
    problems = list(parse(report))
    accepted, new = build_baseline(problems)
    with open(target, "w") as fh:
        json.dump(accepted, fh, indent=1)
    by_code = Counter(p[3] for p in problems)
    for code in sorted(by_code):
        print(f"{code} {by_code[code]:5d} first at {accepted[code][0]}")
    print("files with new problems:", len(new), "problems:", sum(new.values()))


if __name__ == "__main__":
    main()
