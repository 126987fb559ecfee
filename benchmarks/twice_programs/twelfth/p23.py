"""Populates a shop database with sample orders and reports on it.

Modelled on https://github.com/saleor/saleor/pull/7095
The random_data helper made different orders every time, so tests on it failed now and then.
"""
import argparse
import json
import logging
import random
import sqlite3
import time
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
from faker import Faker

log = logging.getLogger("populatedb")
fake = Faker()  # cause


@dataclass
class Config:
    users: int = 25
    orders: int = 180
    start: str = "2021-01-01"
    days: int = 90
    seed: int = 4
    db: str = "shop.db"


SCHEMA = """
CREATE TABLE product (id INTEGER PRIMARY KEY, sku TEXT, category TEXT, price REAL);
CREATE TABLE customer (id INTEGER PRIMARY KEY, email TEXT, country TEXT, note TEXT);
CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer INTEGER, created TEXT,
                       shipping REAL, status TEXT);
CREATE TABLE line (purchase INTEGER, product INTEGER, quantity INTEGER, unit_price REAL);
"""

CATALOGUE = {
    "apparel": [("tee", 25.0), ("hoodie", 60.0), ("scarf", 18.0)],
    "groceries": [("juice", 4.5), ("oil", 12.0), ("seed mix", 6.0), ("tea", 8.0)],
    "books": [("novel", 14.0), ("atlas", 39.0)],
}
COUNTRIES = ["PL", "DE", "US", "FR", "GB"]
SHIPPING = {"PL": 5.0, "DE": 7.0, "US": 15.0, "FR": 8.0, "GB": 9.0}


def connect(path):
    con = sqlite3.connect(path)
    con.executescript(SCHEMA)
    return con


def create_products(con):
    pid = 0
    for category, goods in CATALOGUE.items():
        for name, price in goods:
            pid += 1
            sku = f"{category[:3].upper()}-{pid:03d}"
            con.execute("INSERT INTO product VALUES (?,?,?,?)", (pid, sku, category, price))
            log.debug("product %s", name)
    return pid


def create_customers(con, cfg):
    for cid in range(1, cfg.users + 1):
        country = random.choice(COUNTRIES)
        note = random.choice(["", "vip", "wholesale"])
        con.execute("INSERT INTO customer VALUES (?,?,?,?)",
                    (cid, f"customer{cid}@example.com", country, note))


def create_order_lines(con, order_id, n_products):
    chosen = random.sample(range(1, n_products + 1), random.randint(1, 4))
    for pid in chosen:
        (price,) = con.execute("SELECT price FROM product WHERE id=?", (pid,)).fetchone()
        quantity = fake.random_int(1, 9)  # cause
        unit = round(price * (0.9 if quantity >= 6 else 1.0), 2)
        con.execute("INSERT INTO line VALUES (?,?,?,?)", (order_id, pid, quantity, unit))


def create_orders(con, cfg, n_products):
    start = datetime.fromisoformat(cfg.start)
    for oid in range(1, cfg.orders + 1):
        cid = random.randint(1, cfg.users)
        (country,) = con.execute("SELECT country FROM customer WHERE id=?", (cid,)).fetchone()
        created = start + timedelta(days=random.randrange(cfg.days),
                                    minutes=random.randrange(1440))
        status = random.choices(["fulfilled", "unfulfilled", "canceled"], [8, 2, 1])[0]
        con.execute("INSERT INTO purchase VALUES (?,?,?,?,?)",
                    (oid, cid, created.isoformat(), SHIPPING[country], status))
        create_order_lines(con, oid, n_products)


def read_lines(con):
    return pd.read_sql(
        """SELECT p.id AS order_id, p.customer, c.country, p.created, p.status,
                  g.category, l.quantity, l.quantity * l.unit_price AS total
           FROM purchase p JOIN line l ON l.purchase = p.id
           JOIN customer c ON c.id = p.customer
           JOIN product g ON g.id = l.product
           ORDER BY p.id, l.product""",
        con,
        parse_dates=["created"],
    )


def weekly_revenue(lines):
    ok = lines[lines["status"] != "canceled"]
    return ok.set_index("created")["total"].resample("W").sum()


def trend(series):
    y = series.to_numpy()
    slope, intercept = np.polyfit(np.arange(len(y)), y, 1)
    return float(slope), float(intercept)


def best_customers(lines, n=5):
    spend = lines.groupby("customer")["total"].sum().reset_index()
    return spend.sort_values(["total", "customer"], ascending=[False, True]).head(n)


def rfm(lines, cfg):
    end = pd.Timestamp(cfg.start) + pd.Timedelta(days=cfg.days)
    g = lines.groupby("customer")
    return pd.DataFrame({
        "recency": (end - g["created"].max()).dt.days,
        "frequency": g["order_id"].nunique(),
        "monetary": g["total"].sum().round(2),
    })


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--orders", type=int, default=Config.orders)
    ap.add_argument("--users", type=int, default=Config.users)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    cfg = Config(orders=args.orders, users=args.users)
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)

    t0 = time.time()
    con = connect(cfg.db)
    with con:
        n_products = create_products(con)
        create_customers(con, cfg)
        create_orders(con, cfg, n_products)
    log.info("populated %s in %.2fs", cfg.db, time.time() - t0)

    lines = read_lines(con)
    weekly = weekly_revenue(lines)
    slope, intercept = trend(weekly)
    print(f"{lines['order_id'].nunique()} orders, {len(lines)} lines, "
          f"revenue {lines['total'].sum():.2f}")
    print(lines.pivot_table(index="country", columns="category", values="total",
                            aggfunc="sum").round(2).to_string())
    print(f"weekly trend {slope:+.3f} per week from {intercept:.2f}")
    print("best customers:")
    for row in best_customers(lines).itertuples():
        print(f"  customer{row.customer} {row.total:.2f}")
    rfm(lines, cfg).to_csv("rfm.csv")
    weekly.round(2).to_csv("weekly.csv")
    with open("report.json", "w") as fh:
        json.dump({"slope": slope, "units": int(lines["quantity"].sum())}, fh)
    con.close()


if __name__ == "__main__":
    main()
