"""Step 2: flatten the bundle to one row per patient and assign splits."""
import argparse
import csv
import hashlib
import json
from pathlib import Path
from statistics import mean

FIELDS = ["id", "split", "age", "male", "n_encounters", "systolic", "glucose", "bmi",
          "hypertension", "diabetes", "asthma", "copd", "readmitted"]


def assign(pid, test_percent):
    bucket = int(hashlib.sha1(pid.encode()).hexdigest(), 16) % 100
    return "test" if bucket < test_percent else "train"


def row(p, test_percent):
    enc = p["encounters"]
    r = {"id": p["id"], "split": assign(p["id"], test_percent), "age": p["age"],
         "male": int(p["sex"] == "M"), "n_encounters": len(enc), "readmitted": p["readmitted"]}
    for k in ("systolic", "glucose", "bmi"):
        r[k] = round(mean(e[k] for e in enc), 3)
    for c in ("hypertension", "diabetes", "asthma", "copd"):
        r[c] = int(c in p["conditions"])
    return r


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--bundle", required=True)
    ap.add_argument("--test-percent", type=int, default=30)
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    patients = json.loads(Path(args.bundle).read_text())
    rows = [row(p, args.test_percent) for p in patients]
    with open(args.out, "w", newline="") as fh:
        w = csv.DictWriter(fh, fieldnames=FIELDS)
        w.writeheader()
        w.writerows(rows)
    n_test = sum(r["split"] == "test" for r in rows)
    print(f"cohort: {len(rows) - n_test} train, {n_test} test")


if __name__ == "__main__":
    main()
