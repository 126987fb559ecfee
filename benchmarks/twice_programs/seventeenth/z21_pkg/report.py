"""Per-case table and per-category summary."""
import csv
import json
from collections import defaultdict
from statistics import fmean


def by_category(rep, cases):
    groups = defaultdict(list)
    for case, scores, ok in zip(cases, rep.scores, rep.passed):
        groups[case.category].append((case, scores, ok))
    out = {}
    for category in sorted(groups):
        rows = groups[category]
        weight = sum(c.difficulty for c, _, _ in rows)
        out[category] = {
            "cases": len(rows),
            "pass_rate": fmean(ok for _, _, ok in rows),
            "recall": fmean(s["field_recall"] for _, s, _ in rows),
            "weighted": sum(c.difficulty * s["field_recall"] for c, s, _ in rows) / weight,
            "calibration": fmean(s["calibration"] for _, s, _ in rows),
        }
    return out


def write(rep, cases, out):
    with open(out / "cases.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["name", "category", "field_recall", "exact", "calibration", "passed"])
        for case, scores, ok in zip(cases, rep.scores, rep.passed):
            writer.writerow([case.name, case.category, f"{scores['field_recall']:.4f}",
                             int(scores["exact"]), f"{scores['calibration']:.6f}", int(ok)])
    (out / "summary.json").write_text(json.dumps(by_category(rep, cases), indent=2))


def show(rep, cases):
    for category, row in by_category(rep, cases).items():
        print(f"{category:8s} n={row['cases']:3d}  pass {row['pass_rate']:.4f}  "
              f"recall {row['recall']:.5f}  weighted {row['weighted']:.5f}  "
              f"calibration {row['calibration']:.5f}")
    failed = [c.name for c, ok in zip(cases, rep.passed) if not ok]
    print(f"{len(failed)} failed, first: {', '.join(failed[:6])}")
