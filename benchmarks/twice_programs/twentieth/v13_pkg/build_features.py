"""Features of each customer from the orders of the first quarter year."""
import argparse
import sqlite3

import numpy as np
import pandas as pd

EPOCH = pd.Timestamp("2020-01-01")
WINDOW = pd.Timedelta(days=90)


def load(db):
    con = sqlite3.connect(db)
    customers = pd.read_sql("SELECT * FROM customer ORDER BY id", con, parse_dates=["signed_up"])
    orders = pd.read_sql("SELECT * FROM purchase ORDER BY id", con, parse_dates=["placed"])
    con.close()
    return customers, orders


def customer_features(customer, orders):
    early = orders[orders["placed"] < customer["signed_up"] + WINDOW]
    hour = early["placed"].dt.hour + early["placed"].dt.minute / 60 + early["placed"].dt.second / 3600
    gaps = early["placed"].diff().dt.total_seconds().dropna() / 86400
    signed = customer["signed_up"]
    year_angle = 2 * np.pi * (signed.day_of_year + signed.hour / 24 + signed.minute / 1440 + signed.second / 86400) / 366
    return {
        "customer_id": customer["id"],
        "tenure_start": (signed - EPOCH).total_seconds() / 86400,
        "season_sin": np.sin(year_angle),
        "season_cos": np.cos(year_angle),
        "weekday": signed.day_of_week,
        "birth_year": customer["birth_year"],
        "n_early": len(early),
        "amount_early": early["amount"].sum(),
        "evening": (hour >= 18).mean() if len(early) else 0.0,
        "mean_hour": hour.mean() if len(early) else 12.0,
        "mean_gap": gaps.mean() if len(gaps) else 90.0,
        "app_share": (early["channel"] == "app").mean() if len(early) else 0.0,
        "ltv": orders["amount"].sum(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    customers, orders = load(args.db)
    by_customer = dict(tuple(orders.groupby("customer_id")))
    rows = [customer_features(c, by_customer[c["id"]]) for c in customers.to_dict("records")]
    table = pd.DataFrame(rows)
    table.to_csv(args.out, index=False)
    print(f"{len(table)} rows, mean first-quarter amount {table['amount_early'].mean():.6f}, "
          f"mean hour {table['mean_hour'].mean():.6f}")


if __name__ == "__main__":
    main()
