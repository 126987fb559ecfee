"""Retail loyalty data preparation.

Makes a log of purchases, aggregates it per customer, gives every customer a
row number that serves as surrogate key in the star schema, splits the customers
into an A/B test by that key, and writes the dimension and the fact table.

Modelled on: https://rhosignal.com/posts/polars-ordering
"""
import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl


@dataclass
class Settings:
    customers: int = 4000
    purchases: int = 400_000
    seed: int = 2024
    arms: int = 2
    out: Path = Path(".")


class PurchaseLog:
    """Synthetic purchases of one year."""

    def __init__(self, settings):
        self.settings = settings
        self.rng = np.random.default_rng(settings.seed)

    def frame(self):
        s = self.settings
        who = self.rng.zipf(1.3, size=s.purchases) % s.customers
        day = self.rng.integers(0, 365, size=s.purchases)
        cents = np.round(self.rng.gamma(2.0, 900.0, size=s.purchases)).astype(np.int64) + 50
        shop = self.rng.integers(1, 31, size=s.purchases)
        return pl.DataFrame({
            "customer": [f"C{w:06d}" for w in who],
            "day": day,
            "cents": cents,
            "shop": shop,
        })


def customer_dimension(log):
    """One row per customer with recency, frequency and spend."""
    grouped = log.group_by("customer").agg(  # cause
        pl.col("day").max().alias("last_day"),
        pl.len().alias("visits"),
        pl.col("cents").sum().alias("spend"),
        pl.col("shop").n_unique().alias("shops"),
    )
    return grouped.with_row_index("customer_key")


def assign_arms(dimension, arms):
    return dimension.with_columns((pl.col("customer_key") % arms).alias("arm"))


def fact_table(log, dimension):
    keys = dict(zip(dimension["customer"].to_list(), dimension["customer_key"].to_list()))
    keyed = [keys[c] for c in log["customer"].to_list()]
    return log.with_columns(pl.Series("customer_key", keyed)).drop("customer")


def monthly(facts, dimension):
    """Revenue per month and arm as a small numpy table."""
    arm_of = np.zeros(len(dimension), dtype=int)
    arm_of[dimension["customer_key"].to_numpy()] = dimension["arm"].to_numpy()
    arms = arm_of[facts["customer_key"].to_numpy()]
    months = facts["day"].to_numpy() * 12 // 365
    table = np.zeros((12, arm_of.max() + 1), dtype=np.int64)
    np.add.at(table, (months, arms), facts["cents"].to_numpy())
    return table


def uplift(dimension):
    spend = dimension["spend"].to_numpy()
    arm = dimension["arm"].to_numpy()
    a, b = spend[arm == 0], spend[arm == 1]
    diff = a.mean() - b.mean()
    err = np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
    return diff / 100, err / 100


def write_all(settings, dimension, facts, table):
    dimension.write_csv(settings.out / "dim_customer.csv")
    facts.head(2000).write_csv(settings.out / "fact_purchase_head.csv")
    (settings.out / "monthly.json").write_text(json.dumps(table.tolist(), indent=1))


def main():
    settings = Settings()
    begin = time.perf_counter()
    log = PurchaseLog(settings).frame()
    print(f"purchases: {log.height}, revenue {log['cents'].sum() / 100:.2f}")
    dimension = assign_arms(customer_dimension(log), settings.arms)
    facts = fact_table(log, dimension)
    table = monthly(facts, dimension)
    for month, row in enumerate(table, 1):
        print(f"month {month:2d}: " + " ".join(f"{v / 100:12.2f}" for v in row))
    diff, err = uplift(dimension)
    print(f"pre-period difference between arms: {diff:.3f} +- {err:.3f}")
    write_all(settings, dimension, facts, table)
    print(f"done in {time.perf_counter() - begin:.2f} s")


if __name__ == "__main__":
    main()
