"""Modelled on https://github.com/zark-stark12/crm-rfm-modeling/issues/2. Scores and segments the customers and picks the campaign list."""
import argparse
import json
import logging
import os
import time

import numpy as np
import pandas as pd

logging.basicConfig(level=logging.INFO, format="%(asctime)s score %(message)s")
log = logging.getLogger(__name__)

HALF_LIFE = 120.0
SEGMENTS = [("champion", 4, 4), ("loyal", 3, 3), ("promising", 4, 1), ("at_risk", 1, 3), ("hibernating", 1, 1)]


def quintile(s, reverse=False):
    r = s.rank(method="first", ascending=not reverse, pct=True)
    return np.ceil(r * 5).clip(1, 5).astype(int)


def assign_segment(r, f):
    for name, rmin, fmin in SEGMENTS:
        if r >= rmin and f >= fmin:
            return name
    return "other"


def score(rfm):
    out = rfm.copy()
    out["r"] = quintile(out["recency"], reverse=True)
    out["f"] = quintile(out["frequency"])
    out["m"] = quintile(out["monetary"])
    out["segment"] = [assign_segment(r, f) for r, f in zip(out["r"], out["f"])]
    rate = out["frequency"] / out["tenure"].clip(lower=30.0)
    alive = 1.0 / (1.0 + (out["overdue"] / 3.0) ** 1.5)
    out["decay"] = 0.5 ** (out["recency"] / HALF_LIFE)
    out["expected_orders_90d"] = 90.0 * rate * alive
    out["expected_value"] = out["expected_orders_90d"] * out["monetary"] * (0.5 + 0.5 * out["decay"])
    return out


def segment_report(df):
    g = df.groupby("segment", sort=True)
    return pd.DataFrame({"n": g.size(), "recency": g["recency"].mean(), "monetary": g["monetary"].mean(), "value": g["expected_value"].sum()})


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rfm", required=True)
    ap.add_argument("--outdir", required=True)
    ap.add_argument("--budget", type=int, default=60)
    args = ap.parse_args()
    t0 = time.time()
    rfm = pd.read_csv(args.rfm, index_col="customer_id")
    df = score(rfm)
    report = segment_report(df)
    lapsing = df[(df["overdue"] > 1.0)].sort_values("expected_value", ascending=False, kind="stable").head(args.budget)
    df.to_csv(os.path.join(args.outdir, "scores.csv"))
    lapsing[["segment", "expected_value", "recency"]].to_csv(os.path.join(args.outdir, "campaign.csv"))
    with open(os.path.join(args.outdir, "report.json"), "w") as fh:
        json.dump({"segments": report.reset_index().to_dict("records"), "total_value": float(df["expected_value"].sum())}, fh, indent=2)
    print(report.to_string(float_format=lambda v: f"{v:.7f}"))
    print(f"total expected value (90 days): {df['expected_value'].sum():.8f}")
    log.info("scored %d customers in %.2fs", len(df), time.time() - t0)


if __name__ == "__main__":
    main()
