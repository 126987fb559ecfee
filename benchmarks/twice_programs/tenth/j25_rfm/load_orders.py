"""Modelled on https://github.com/zark-stark12/crm-rfm-modeling/issues/2. Produces the order extract of a small web shop."""
import argparse
import logging

import numpy as np
import pandas as pd

logging.basicConfig(level=logging.INFO, format="%(asctime)s load %(message)s")
log = logging.getLogger(__name__)

START = pd.Timestamp("2025-01-01")
DAYS = 540


def customer_orders(rng, cid):
    rate = rng.gamma(1.6, 1.0 / 45.0)
    basket = np.exp(rng.normal(3.6, 0.5))
    birth = rng.uniform(0, DAYS * 0.7)
    death = min(DAYS, birth + rng.exponential(320.0) + 1.0)
    t, rows = birth, []
    while t < death:
        when = START + pd.Timedelta(seconds=int(t * 86400))
        rows.append((cid, when, round(float(basket * rng.gamma(5.0, 0.2)), 2)))
        t += rng.exponential(1.0 / rate)
    return rows


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", required=True)
    ap.add_argument("--customers", type=int, default=400)
    ap.add_argument("--seed", type=int, default=5)
    args = ap.parse_args()
    rng = np.random.default_rng(args.seed)
    rows = []
    for c in range(args.customers):
        rows.extend(customer_orders(rng, f"C{c:05d}"))
    df = pd.DataFrame(rows, columns=["customer_id", "order_date", "amount"])
    df = df.sort_values(["order_date", "customer_id"], kind="stable").reset_index(drop=True)
    df.insert(0, "order_id", [f"O{i:06d}" for i in range(len(df))])
    bad = rng.random(len(df)) < 0.01
    df.loc[bad, "amount"] = -df.loc[bad, "amount"]
    df.to_csv(args.out, index=False)
    log.info("%d orders of %d customers, %s to %s", len(df), df["customer_id"].nunique(), df["order_date"].min(), df["order_date"].max())


if __name__ == "__main__":
    main()
