"""Demo data set for the billing dashboard: customers, subscriptions and invoices.

All tables come from a seeded Faker, so that the screenshots in the manual can be redone. From the
tables the monthly cohorts and the churn figures of the dashboard are computed.

Modelled on: https://github.com/joke2k/faker/issues/566
"""
import argparse
import csv
import json
import random
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from pathlib import Path

from faker import Faker

PLANS = {"basic": 9.0, "team": 29.0, "business": 79.0}
REPORT_DATE = datetime(2024, 6, 30)


class DemoData:
    def __init__(self, seed, locale="en_GB"):
        self.fake = Faker(locale)
        self.fake.seed_instance(seed)
        self.rnd = random.Random(seed)

    def customer(self, cid):
        return {
            "customer_id": cid,
            "name": self.fake.name(),
            "company": self.fake.company(),
            "email": self.fake.email(),
            "city": self.fake.city(),
            "plan": self.rnd.choices(list(PLANS), weights=[6, 3, 1])[0],
        }

    def subscription(self, customer):
        start = REPORT_DATE - timedelta(days=self.rnd.randint(30, 900))
        months = self.rnd.randint(1, 36)
        end = start + timedelta(days=30 * months)
        return {
            "customer_id": customer["customer_id"],
            "plan": customer["plan"],
            "start": start.date().isoformat(),
            "end": end.date().isoformat() if end < REPORT_DATE else "",
        }

    def login(self, customer):
        seen = self.fake.date_time()  # cause
        return {
            "customer_id": customer["customer_id"],
            "seen": seen.strftime("%Y-%m-%d %H:%M:%S"),
            "weekday": seen.strftime("%a"),
            "ip": self.fake.ipv4_public(),
            "agent": self.fake.random_element(["web", "ios", "android", "api"]),
        }

    def invoices(self, sub):
        rows = []
        day = datetime.fromisoformat(sub["start"])
        end = datetime.fromisoformat(sub["end"]) if sub["end"] else REPORT_DATE
        while day < end:
            amount = PLANS[sub["plan"]] * (1 + (self.rnd.random() < 0.1) * 0.5)
            rows.append({"customer_id": sub["customer_id"], "date": day.date().isoformat(),
                         "amount": round(amount, 2)})
            day += timedelta(days=30)
        return rows


def write_csv(path, rows):
    with open(path, "w", newline="") as f:
        w = csv.DictWriter(f, fieldnames=list(rows[0]))
        w.writeheader()
        w.writerows(rows)


def cohorts(subs):
    table = defaultdict(lambda: [0, 0])
    for s in subs:
        month = s["start"][:7]
        table[month][0] += 1
        table[month][1] += s["end"] == ""
    return {m: {"started": n, "active": a} for m, (n, a) in sorted(table.items())}


def revenue(invoices):
    per_month = defaultdict(float)
    for inv in invoices:
        per_month[inv["date"][:7]] += inv["amount"]
    return {m: round(v, 2) for m, v in sorted(per_month.items())}


def activity(logins):
    hours = Counter(r["seen"][11:13] for r in logins)
    agents = Counter(r["agent"] for r in logins)
    last = max(logins, key=lambda r: r["seen"])
    return {
        "by_hour": dict(sorted(hours.items())),
        "by_agent": dict(sorted(agents.items())),
        "last_login": {"customer_id": last["customer_id"], "seen": last["seen"]},
    }


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--customers", type=int, default=800)
    ap.add_argument("--logins", type=int, default=6)
    ap.add_argument("--seed", type=int, default=4711)
    ap.add_argument("--out", default="demo")
    args = ap.parse_args()

    out = Path(args.out)
    out.mkdir(exist_ok=True)
    data = DemoData(args.seed)
    customers = [data.customer(f"C{i:05d}") for i in range(args.customers)]
    subs = [data.subscription(c) for c in customers]
    invoices = [inv for s in subs for inv in data.invoices(s)]
    logins = [data.login(c) for c in customers for _ in range(args.logins)]

    write_csv(out / "customers.csv", customers)
    write_csv(out / "subscriptions.csv", subs)
    write_csv(out / "invoices.csv", invoices)
    write_csv(out / "logins.csv", logins)
    dashboard = {
        "cohorts": cohorts(subs),
        "revenue": revenue(invoices),
        "churned": sum(s["end"] != "" for s in subs) / len(subs),
        "activity": activity(logins),
    }
    (out / "dashboard.json").write_text(json.dumps(dashboard, indent=1))

    print(f"{datetime.now():%Y-%m-%d %H:%M} wrote {len(customers)} customers, {len(invoices)} invoices")
    print(f"churned {dashboard['churned']:.1%}")
    print("last login", dashboard["activity"]["last_login"])


if __name__ == "__main__":
    main()
