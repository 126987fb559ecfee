"""Customers and receipts of a retail chain."""
import numpy as np
import pandas as pd

PREFECTURES = ["Chiba", "Tokyo", "Kanagawa", "Saitama"]


def _customers(n, rng):
    since = np.datetime64("2014-01-01") + rng.integers(0, 2000, n)
    return pd.DataFrame({
        "customer_id": [f"CS{i:08d}" for i in rng.permutation(n)],
        "age": np.clip(rng.normal(47, 16, n), 15, 95).astype(int),
        "gender_cd": rng.choice([0, 1, 9], n, p=[0.3, 0.62, 0.08]),
        "prefecture": rng.choice(PREFECTURES, n, p=[0.2, 0.35, 0.3, 0.15]),
        "application_date": since,
    })


def _receipts(customers, rng):
    age = customers["age"].to_numpy()
    woman = (customers["gender_cd"] == 1).to_numpy()
    tokyo = (customers["prefecture"] == "Tokyo").to_numpy()
    score = -0.9 + 0.5 * woman + 0.02 * (age - 47) - 0.25 * tokyo + rng.normal(0, 0.8, len(age))
    buys = rng.random(len(age)) < 1 / (1 + np.exp(-score))
    owner = np.repeat(np.flatnonzero(buys), rng.integers(1, 6, buys.sum()))
    return pd.DataFrame({
        "customer_id": customers["customer_id"].to_numpy()[owner],
        "sales_ymd": 20170101 + rng.integers(0, 28, len(owner)) + 100 * rng.integers(0, 12, len(owner)),
        "amount": np.round(rng.lognormal(6.0, 0.8, len(owner))).astype(int),
    })


def create_tables(con, n_customers, seed):
    rng = np.random.default_rng(seed)
    customer = _customers(n_customers, rng)
    receipt = _receipts(customer, rng)
    for name, frame in (("customer", customer), ("receipt", receipt)):
        con.register("frame_", frame)
        con.execute(f"CREATE TABLE {name} AS SELECT * FROM frame_")
        con.unregister("frame_")
    return {"customer": len(customer), "receipt": len(receipt)}
