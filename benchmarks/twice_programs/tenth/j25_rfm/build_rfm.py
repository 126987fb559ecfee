"""Modelled on https://github.com/zark-stark12/crm-rfm-modeling/issues/2. Turns transactions into one RFM row per customer."""
import argparse
import logging
from datetime import datetime

import pandas as pd

logging.basicConfig(level=logging.INFO, format="%(asctime)s rfm %(message)s")
log = logging.getLogger(__name__)

DAY = 86400.0


def clean(df):
    before = len(df)
    df = df[df["amount"] > 0].copy()
    df = df.drop_duplicates("order_id")
    log.info("dropped %d of %d rows", before - len(df), before)
    return df


class CRMModel:
    def __init__(self, orders, recency_end_date=None):
        self.orders = orders
        if recency_end_date is None:
            self.end_date = datetime.now()  # cause
        else:
            self.end_date = datetime.strptime(recency_end_date, "%Y-%m-%d")

    def table(self):
        grouped = self.orders.groupby("customer_id", sort=True)
        first, last = grouped["order_date"].min(), grouped["order_date"].max()
        out = pd.DataFrame(
            {
                "recency": (self.end_date - last).dt.total_seconds() / DAY,
                "tenure": (self.end_date - first).dt.total_seconds() / DAY,
                "frequency": grouped.size(),
                "monetary": grouped["amount"].mean().round(4),
            }
        )
        span = (last - first).dt.total_seconds() / DAY
        out["mean_gap"] = (span / (out["frequency"] - 1).clip(lower=1)).where(out["frequency"] > 1, out["tenure"])
        out["overdue"] = out["recency"] / out["mean_gap"].clip(lower=1.0)
        return out


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--orders", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--end-date", default=None)
    args = ap.parse_args()
    orders = clean(pd.read_csv(args.orders, parse_dates=["order_date"]))
    rfm = CRMModel(orders, args.end_date).table()
    rfm.to_csv(args.out)
    print(f"customers {len(rfm)}")
    for col in ("recency", "tenure", "frequency", "monetary", "overdue"):
        print(f"  {col:<10} mean {rfm[col].mean():.8f} median {rfm[col].median():.8f}")


if __name__ == "__main__":
    main()
