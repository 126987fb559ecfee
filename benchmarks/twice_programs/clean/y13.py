"""A small warehouse of models and tests on SQLite, run and reported the way dbt does.

Modelled on: dbt-labs/dbt-core ("1 of 9 OK created sql table model ... [in 0.05s]", "Done. PASS=..",
logs/dbt.log with thread names and invocation id, target/run_results.json, target/manifest.json).
"""
import json
import logging
import sqlite3
import time
import uuid
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

VERSION = "1.9.4"
INVOCATION = str(uuid.uuid4())

MODELS = {
    "stg_customers": ("view", [], "select id as customer_id, first_name, country, signup as signed_up_at from raw_customers"),
    "stg_orders": ("view", [], "select id as order_id, customer as customer_id, ordered_at, status from raw_orders"),
    "stg_items": ("view", [], "select order_id, sku, quantity, price_cents / 100.0 as price from raw_items"),
    "order_totals": ("table", ["stg_orders", "stg_items"],
                     "select o.order_id, o.customer_id, o.ordered_at, o.status, sum(i.quantity) as units, round(sum(i.quantity * i.price), 2) as amount "
                     "from stg_orders o join stg_items i using (order_id) group by 1, 2, 3, 4 order by 1"),
    "customers": ("table", ["stg_customers", "order_totals"],
                  "select c.customer_id, c.country, count(t.order_id) as orders, min(t.ordered_at) as first_order, max(t.ordered_at) as last_order, "
                  "round(coalesce(sum(case when t.status <> 'returned' then t.amount end), 0), 2) as lifetime_value "
                  "from stg_customers c left join order_totals t using (customer_id) group by 1, 2 order by 1"),
    "revenue_by_month": ("table", ["order_totals"],
                         "select substr(ordered_at, 1, 7) as month, count(*) as orders, round(sum(amount), 2) as revenue, "
                         "round(avg(amount), 4) as mean_basket from order_totals where status <> 'returned' group by 1 order by 1"),
    "country_ranking": ("table", ["customers"],
                        "select country, count(*) as customers, round(sum(lifetime_value), 2) as value, "
                        "rank() over (order by sum(lifetime_value) desc) as position from customers group by 1 order by 4"),
}
TESTS = {
    "unique_order_totals_order_id": "select order_id from order_totals group by 1 having count(*) > 1",
    "not_null_customers_customer_id": "select 1 from customers where customer_id is null",
    "accepted_values_stg_orders_status": "select status from stg_orders where status not in ('placed', 'shipped', 'returned')",
    "relationships_order_totals_customer_id": "select t.customer_id from order_totals t left join customers c using (customer_id) where c.customer_id is null",
    "assert_positive_amount": "select order_id from order_totals where amount <= 0",
}


def utc():
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Reporter:
    def __init__(self):
        Path("logs").mkdir()
        self.log = logging.getLogger("dbt")
        self.log.setLevel(logging.DEBUG)
        h = logging.FileHandler("logs/dbt.log")
        h.setFormatter(logging.Formatter("%(asctime)s.%(msecs)03d [%(levelname)-5s] [%(threadName)s]: %(message)s", "%H:%M:%S"))
        self.log.addHandler(h)

    def info(self, text):
        print(f"{datetime.now():%H:%M:%S}  {text}")
        self.log.info(text)

    def debug(self, text):
        self.log.debug(text)


def seed(con):
    rng = np.random.default_rng(2718)
    countries = ["NL", "DE", "FR", "PL", "SE", "PT"]
    names = "Anna Bram Chloe Dirk Eva Frank Greet Hugo Iris Joost".split()
    nc, no = 400, 2500
    con.executescript("create table raw_customers (id integer, first_name text, country text, signup text);"
                      "create table raw_orders (id integer, customer integer, ordered_at text, status text);"
                      "create table raw_items (order_id integer, sku text, quantity integer, price_cents integer);")
    day = lambda d: str(np.datetime64("2023-01-01") + int(d))
    con.executemany("insert into raw_customers values (?,?,?,?)", [
        (i, names[int(rng.integers(10))], countries[int(rng.choice(6, p=[.3, .25, .2, .1, .1, .05]))], day(rng.integers(0, 300))) for i in range(1, nc + 1)])
    con.executemany("insert into raw_orders values (?,?,?,?)", [
        (i, int(rng.integers(1, nc + 1)), day(rng.integers(0, 540)), ["placed", "shipped", "returned"][int(rng.choice(3, p=[.1, .8, .1]))]) for i in range(1, no + 1)])
    items = []
    for o in range(1, no + 1):
        for _ in range(int(rng.integers(1, 5))):
            k = int(rng.integers(60))
            items.append((o, f"SKU-{k:03d}", int(rng.integers(1, 4)), 199 + 83 * k))
    con.executemany("insert into raw_items values (?,?,?,?)", items)
    con.commit()
    return nc, no, len(items)


def node_result(uid, status, rows, started, done, failures=None, compiled=""):
    return {"status": status, "timing": [{"name": "compile", "started_at": started, "completed_at": started}, {"name": "execute", "started_at": started, "completed_at": done[0]}],
            "thread_id": "Thread-1 (worker)", "execution_time": done[1], "adapter_response": {"_message": "OK", "rows_affected": rows},
            "message": "OK", "failures": failures, "unique_id": uid, "compiled_code": compiled}


def main():
    t0 = time.perf_counter()
    rep = Reporter()
    rep.debug(f"============================== {utc()} | {INVOCATION} ==============================")
    rep.info(f"Running with dbt={VERSION}")
    rep.info("Registered adapter: sqlite=1.9.0")
    con = sqlite3.connect("warehouse.db")
    counts = seed(con)
    rep.info(f"Found {len(MODELS)} models, {len(TESTS)} data tests, 3 seeds, {sum(counts)} seed rows")
    rep.info("")
    rep.info("Concurrency: 1 threads (target='dev')")
    rep.info("")
    results, total = [], len(MODELS) + len(TESTS)
    manifest = {}
    for k, (name, (kind, deps, sql)) in enumerate(MODELS.items(), 1):
        rep.info(f"{k} of {total} START sql {kind} model main.{name} ".ljust(70, ".") + " [RUN]")
        started, t = utc(), time.perf_counter()
        con.execute(f"create {kind} {name} as {sql}")
        con.commit()
        rows = con.execute(f"select count(*) from {name}").fetchone()[0] if kind == "table" else -1
        took = time.perf_counter() - t
        rep.debug(f'On model.shop.{name}: /* {{"app": "dbt", "node_id": "model.shop.{name}"}} */ {sql}')
        rep.debug(f"SQL status: OK in {took:.3f} seconds")
        rep.info(f"{k} of {total} OK created sql {kind} model main.{name} ".ljust(70, ".") + f" [OK in {took:.2f}s]")
        results.append(node_result(f"model.shop.{name}", "success", rows, started, (utc(), took), compiled=sql))
        manifest[f"model.shop.{name}"] = {"depends_on": deps, "config": {"materialized": kind}, "created_at": time.time(), "raw_code": sql}
    passed = 0
    for k, (name, sql) in enumerate(TESTS.items(), len(MODELS) + 1):
        rep.info(f"{k} of {total} START test {name} ".ljust(70, ".") + " [RUN]")
        started, t = utc(), time.perf_counter()
        failures = len(con.execute(sql).fetchall())
        took = time.perf_counter() - t
        status = "pass" if failures == 0 else "fail"
        passed += status == "pass"
        rep.info(f"{k} of {total} {status.upper()} {name} ".ljust(70, ".") + f" [{status.upper()} in {took:.2f}s]")
        results.append(node_result(f"test.shop.{name}", status, failures, started, (utc(), took), failures, sql))
    elapsed = time.perf_counter() - t0
    rep.info("")
    rep.info(f"Finished running {len(MODELS)} models, {len(TESTS)} data tests in 0 hours 0 minutes and {elapsed:.2f} seconds ({elapsed:.2f}s).")
    rep.info("Completed successfully" if passed == len(TESTS) else "Completed with errors")
    rep.info(f"Done. PASS={len(MODELS) + passed} WARN=0 ERROR={len(TESTS) - passed} SKIP=0 TOTAL={total}")
    print()
    for row in con.execute("select * from country_ranking"):
        print("  " + " | ".join(str(c) for c in row))
    audit = [(INVOCATION, r["unique_id"], r["status"], r["execution_time"], utc()) for r in results]
    con.execute("create table dbt_audit (invocation_id text, node text, status text, execution_time real, loaded_at text)")
    con.executemany("insert into dbt_audit values (?,?,?,?,?)", audit)
    con.commit()
    con.close()
    meta = {"dbt_schema_version": "https://schemas.getdbt.com/dbt/run-results/v6.json", "dbt_version": VERSION, "generated_at": utc(),
            "invocation_id": INVOCATION, "env": {}}
    Path("target").mkdir()
    Path("target/run_results.json").write_text(json.dumps({"metadata": meta, "results": results, "elapsed_time": elapsed, "args": {"which": "build"}}, indent=1))
    Path("target/manifest.json").write_text(json.dumps({"metadata": meta, "nodes": manifest}, indent=1))
    rep.debug(f"Command `dbt build` succeeded at {datetime.now():%H:%M:%S.%f} after {elapsed:.2f} seconds")


if __name__ == "__main__":
    main()
