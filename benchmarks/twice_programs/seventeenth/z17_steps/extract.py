"""Write synthetic claims extracts (person, procedure_occurrence, condition_occurrence)."""
import argparse
from pathlib import Path

import numpy as np
import pandas as pd

CODES = np.array([2005902, 2104836, 2104837, 2105103, 2006073, 2213216])
WEIGHTS = np.array([0.27, 0.22, 0.18, 0.13, 0.12, 0.08])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", type=Path, required=True)
    ap.add_argument("--persons", type=int, default=10000)
    ap.add_argument("--seed", type=int, default=0)
    args = ap.parse_args()
    rng = np.random.default_rng(args.seed)

    n = args.persons
    person = pd.DataFrame({
        "person_id": np.arange(1, n + 1),
        "gender_concept_id": rng.choice([8507, 8532], n),
        "year_of_birth": rng.integers(1925, 1985, n),
    })

    per = rng.poisson(9.0, n)
    pid = np.repeat(person["person_id"].to_numpy(), per)
    m = len(pid)
    day = rng.integers(0, 40, n)[pid - 1] + rng.integers(0, 4, m) * rng.integers(0, 200, m)
    proc = pd.DataFrame({
        "procedure_occurrence_id": rng.permutation(m) + 1,
        "person_id": pid,
        "procedure_concept_id": rng.choice(CODES, m, p=WEIGHTS),
        "procedure_date": pd.Timestamp("2014-01-01") + pd.to_timedelta(day, unit="D"),
        "visit_concept_id": rng.choice([9201, 9202], m, p=[0.7, 0.3]),
        "total_paid": np.round(rng.lognormal(7.5, 0.8, m), 2),
    }).sample(frac=1.0, random_state=args.seed)

    risk = 0.04 + 0.05 * rng.random(n)
    cond_n = rng.poisson(risk * 12)
    cid = np.repeat(person["person_id"].to_numpy(), cond_n)
    cond = pd.DataFrame({
        "person_id": cid,
        "condition_concept_id": rng.choice([4133004, 440417, 444094], len(cid)),
        "condition_start_date": pd.Timestamp("2014-01-05")
        + pd.to_timedelta(rng.integers(0, 700, len(cid)), unit="D"),
    })

    for name, frame in (("person", person), ("procedure_occurrence", proc),
                        ("condition_occurrence", cond)):
        frame.to_parquet(args.out / f"{name}.parquet", index=False, row_group_size=6000)
        print(f"  {name}: {len(frame)} rows")


if __name__ == "__main__":
    main()
