"""Print the tables and write incidence rates with exact intervals."""
import argparse
import json
from pathlib import Path

import pandas as pd
from scipy.stats import chi2


def interval(events, years):
    low = chi2.ppf(0.025, 2 * events) / 2 / years if events else 0.0
    high = chi2.ppf(0.975, 2 * (events + 1)) / 2 / years
    return low, high


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--results", type=Path, required=True)
    args = ap.parse_args()
    base = pd.read_csv(args.results / "baseline.csv")
    out = pd.read_csv(args.results / "outcomes.csv")
    print(base.to_string(index=False))
    rates = {}
    for row in out.itertuples():
        years = row.days / 365.25
        low, high = interval(row.events, years)
        rates[row.label] = {"persons": row.persons, "events": row.events,
                            "rate_per_1000": 1000 * row.events / years,
                            "low": 1000 * low, "high": 1000 * high}
        print(f"{row.label:14s} {row.events:5d} events in {years:9.2f} person-years: "
              f"{1000 * row.events / years:7.3f} per 1000 ({1000 * low:.2f}-{1000 * high:.2f})")
    (args.results / "rates.json").write_text(json.dumps(rates, indent=2))


if __name__ == "__main__":
    main()
