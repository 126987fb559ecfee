"""Fills the database of the demo shop with customers and orders."""
import argparse
import random
import sqlite3
from datetime import timedelta

from faker import Faker

SCHEMA = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, email TEXT, city TEXT, birth_year INTEGER, signed_up TEXT);
CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer_id INTEGER, placed TEXT, amount REAL, channel TEXT);
"""
CHANNELS = ("web", "app", "shop")


class ShopMaker:
    def __init__(self, seed):
        Faker.seed(seed)
        self.fake = Faker("en_GB")
        self.rng = random.Random(seed)

    def customer(self, number):
        signed_up = self.fake.past_datetime(start_date="-3y")  # cause
        return {
            "id": number,
            "name": self.fake.name(),
            "email": f"{self.fake.user_name()}{number}@example.org",
            "city": self.fake.city(),
            "birth_year": self.rng.randint(1940, 2004),
            "signed_up": signed_up,
        }

    def purchases(self, customer):
        """Orders follow the sign-up with exponential gaps."""
        rng = self.rng
        keen = rng.gammavariate(2.0, 0.5)
        young = customer["birth_year"] > 1985
        when = customer["signed_up"]
        for _ in range(1 + int(rng.expovariate(1 / (4 * keen + 0.5)))):
            when = when + timedelta(hours=rng.expovariate(1 / (500 / (0.3 + keen))))
            season = 1.25 if when.month in (11, 12) else 1.0
            evening = 1.1 if when.hour >= 18 else 1.0
            amount = rng.lognormvariate(3.2 + 0.2 * keen, 0.5) * season * evening
            channel = rng.choices(CHANNELS, (4, 5, 1) if young else (4, 1, 4))[0]
            yield customer["id"], when.isoformat(sep=" ", timespec="seconds"), round(amount, 2), channel


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--customers", type=int, default=500)
    parser.add_argument("--db", required=True)
    args = parser.parse_args()

    shop = ShopMaker(args.seed)
    con = sqlite3.connect(args.db)
    con.executescript(SCHEMA)
    orders = 0
    for number in range(1, args.customers + 1):
        c = shop.customer(number)
        con.execute("INSERT INTO customer VALUES (?, ?, ?, ?, ?, ?)",
                    (c["id"], c["name"], c["email"], c["city"], c["birth_year"], str(c["signed_up"])))
        rows = list(shop.purchases(c))
        con.executemany("INSERT INTO purchase (customer_id, placed, amount, channel) VALUES (?, ?, ?, ?)", rows)
        orders += len(rows)
    con.commit()
    total = con.execute("SELECT SUM(amount) FROM purchase").fetchone()[0]
    con.close()
    print(f"{args.customers} customers, {orders} orders, turnover {total:.2f}")


if __name__ == "__main__":
    main()
