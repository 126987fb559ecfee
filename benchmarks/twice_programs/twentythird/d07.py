"""Loads orders of a shop into entities with identifiers and makes reports.

Raw orders (made here) are split into customers, products and orders, each of
which gets an identifier; the tables are written as CSV sorted by identifier,
a control group is chosen by identifier, and a few reports are computed.

Modelled on: https://nathanielknight.ca/articles/consistent_random_uuids_in_python.html
"""
import csv
import logging
import random
import uuid
from collections import defaultdict
from dataclasses import dataclass, field

import pandas as pd

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
log = logging.getLogger("etl")

SEED = "peanutbutter"
CITIES = ["Bergen", "Bodø", "Drammen", "Oslo", "Stavanger", "Tromsø", "Trondheim"]
WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "harbor", "iris", "juniper"]


def new_id():
    return str(uuid.uuid4())  # cause


@dataclass
class Customer:
    email: str
    city: str
    id: str = field(default_factory=new_id)


@dataclass
class Product:
    title: str
    price: float
    id: str = field(default_factory=new_id)


@dataclass
class Order:
    customer_id: str
    product_id: str
    quantity: int
    day: int
    id: str = field(default_factory=new_id)


def make_raw_orders(n):
    """Rows as they come from the shop's export."""
    products = [(f"{random.choice(WORDS)}-{random.choice(WORDS)}-{k}", round(random.uniform(3, 300), 2))
                for k in range(120)]
    customers = [(f"user{k}@example.org", random.choice(CITIES)) for k in range(3000)]
    rows = []
    for _ in range(n):
        email, city = random.choice(customers)
        title, price = random.choice(products)
        rows.append({"email": email, "city": city, "title": title, "price": price,
                     "quantity": random.randint(1, 5), "day": random.randint(1, 180)})
    return rows


class Loader:
    def __init__(self):
        self.customers = {}
        self.products = {}
        self.orders = []

    def load(self, rows):
        for row in rows:
            customer = self.customers.get(row["email"])
            if customer is None:
                customer = self.customers[row["email"]] = Customer(row["email"], row["city"])
            product = self.products.get(row["title"])
            if product is None:
                product = self.products[row["title"]] = Product(row["title"], row["price"])
            self.orders.append(Order(customer.id, product.id, row["quantity"], row["day"]))
        return self

    def frames(self):
        customers = pd.DataFrame([vars(c) for c in self.customers.values()])
        products = pd.DataFrame([vars(p) for p in self.products.values()])
        orders = pd.DataFrame([vars(o) for o in self.orders])
        return tuple(df.sort_values("id", ignore_index=True) for df in (customers, products, orders))


def control_group(customers, share=0.1):
    """Customers whose identifier falls into the lowest part of the range."""
    limit = int(share * 16 ** 8)
    return customers[customers["id"].map(lambda i: int(i[:8], 16) < limit)]


def revenue_by_city(customers, products, orders):
    joined = orders.merge(customers, left_on="customer_id", right_on="id", suffixes=("", "_c"))
    joined = joined.merge(products, left_on="product_id", right_on="id", suffixes=("", "_p"))
    joined["revenue"] = joined["quantity"] * joined["price"]
    return joined.groupby("city")["revenue"].sum().round(2).sort_index(), joined


def repeat_rate(joined, members):
    mine = joined[joined["customer_id"].isin(members["id"])]
    counts = mine.groupby("customer_id")["day"].nunique()
    return float((counts > 8).mean())


def weekly_series(joined):
    series = defaultdict(float)
    for day, revenue in zip(joined["day"], joined["revenue"]):
        series[(day - 1) // 7] += revenue
    return [round(series[w], 2) for w in sorted(series)]


def main():
    random.seed(SEED)
    rows = make_raw_orders(40_000)
    log.info("%d raw orders", len(rows))
    customers, products, orders = Loader().load(rows).frames()
    customers.to_csv("customers.csv", index=False)
    products.to_csv("products.csv", index=False)
    orders.to_csv("orders.csv", index=False)
    log.info("%d customers, %d products", len(customers), len(products))
    by_city, joined = revenue_by_city(customers, products, orders)
    control = control_group(customers)
    rest = customers[~customers["id"].isin(control["id"])]
    print("orders:", len(orders), "customers:", len(customers), "products:", len(products))
    for city, revenue in by_city.items():
        print(f"  {city:10s} {revenue:12.2f}")
    print("control group:", len(control), "customers")
    print("repeat rate, control: %.4f" % repeat_rate(joined, control))
    print("repeat rate, others:  %.4f" % repeat_rate(joined, rest))
    with open("weekly.csv", "w", newline="") as fh:
        out = csv.writer(fh)
        out.writerow(["week", "revenue"])
        out.writerows(enumerate(weekly_series(joined)))
    with open("control.txt", "w") as fh:
        fh.write("\n".join(sorted(control["email"])) + "\n")


if __name__ == "__main__":
    main()
