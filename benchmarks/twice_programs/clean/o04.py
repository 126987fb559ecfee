"""SQL model runner over DuckDB with a DAG, tests and run_results.json, in the style of dbt-core + jaffle_shop."""
import argparse
import json
import os
import random
import re
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import duckdb
from faker import Faker

MODELS = {
    "stg_customers": ("view", "select id as customer_id, first_name, last_name, city from {{ source('customers') }}"),
    "stg_orders": ("view", "select id as order_id, user_id as customer_id, order_date, status from {{ source('orders') }}"),
    "stg_payments": ("view", "select id as payment_id, order_id, payment_method, amount * 0.01 as amount "
                             "from {{ source('payments') }}"),
    "order_payments": ("table", """
        select o.order_id, o.customer_id, o.order_date, o.status,
               coalesce(sum(p.amount), 0) as amount, count(p.payment_id) as n_payments
        from {{ ref('stg_orders') }} o left join {{ ref('stg_payments') }} p using (order_id)
        group by all order by o.order_id"""),
    "customers": ("table", """
        select c.customer_id, c.first_name, c.last_name, c.city, min(order_date) as first_order,
               max(order_date) as most_recent_order, count(order_id) as number_of_orders,
               sum(amount)::decimal(18,2) as customer_lifetime_value
        from {{ ref('stg_customers') }} c left join {{ ref('order_payments') }} o using (customer_id)
        group by all order by c.customer_id"""),
    "monthly_revenue": ("table", """
        select date_trunc('month', order_date) as month, status, count(*) as orders,
               sum(amount)::decimal(18,2) as revenue
        from {{ ref('order_payments') }} group by all order by month, status"""),
    "city_rank": ("table", """
        select city, sum(customer_lifetime_value) as revenue, count(*) as customers,
               rank() over (order by sum(customer_lifetime_value) desc, city) as rnk
        from {{ ref('customers') }} group by city order by rnk"""),
}
TESTS = {
    "unique_customers_customer_id": "select customer_id from main.customers group by 1 having count(*) > 1",
    "not_null_order_payments_amount": "select * from main.order_payments where amount is null",
    "accepted_values_orders_status": "select distinct status from main.stg_orders where status not in "
                                     "('placed','shipped','completed','return_pending','returned')",
    "relationships_orders_customer": "select o.* from main.stg_orders o left join main.stg_customers c "
                                     "using (customer_id) where c.customer_id is null",
}


class EventLog:
    """Console lines plus JSON lines in logs/dbt.log."""

    def __init__(self, invocation_id):
        os.makedirs("logs", exist_ok=True)
        self.invocation_id = invocation_id
        self.fh = open("logs/dbt.log", "a")
        self.lock = threading.Lock()

    def __call__(self, msg="", name="Note", **data):
        now = datetime.now(timezone.utc)
        with self.lock:
            print(f"{now:%H:%M:%S}  {msg}", flush=True)
            self.fh.write(json.dumps({"data": data, "info": {
                "invocation_id": self.invocation_id, "level": "info", "msg": msg, "name": name, "pid": os.getpid(),
                "thread": threading.current_thread().name, "ts": now.isoformat()}}) + "\n")


def seed(con, n_customers, n_orders):
    fake = Faker("en_US")
    Faker.seed(2024)
    rng = random.Random(7)
    cities = [fake.city() for _ in range(25)]
    customers = [(i, fake.first_name(), fake.last_name(), rng.choice(cities)) for i in range(1, n_customers + 1)]
    status = ["placed", "shipped", "completed", "return_pending", "returned"]
    day0 = date(2023, 1, 1)
    orders = [(i, rng.randint(1, n_customers), day0 + timedelta(days=rng.randint(0, 364)), rng.choice(status))
              for i in range(1, n_orders + 1)]
    pays, pid = [], 0
    for o in orders:
        for _ in range(rng.choice([0, 1, 1, 1, 2])):
            pid += 1
            pays.append((pid, o[0], rng.choice(["credit_card", "coupon", "bank_transfer"]), rng.randint(100, 30000)))
    con.execute("create schema raw")
    con.execute("create table raw.customers (id int, first_name text, last_name text, city text)")
    con.execute("create table raw.orders (id int, user_id int, order_date date, status text)")
    con.execute("create table raw.payments (id int, order_id int, payment_method text, amount int)")
    os.makedirs("seeds", exist_ok=True)
    for name, rows in (("customers", customers), ("orders", orders), ("payments", pays)):
        path = Path("seeds") / f"{name}.csv"
        path.write_text("\n".join(",".join(str(v) for v in r) for r in rows) + "\n")
        con.execute(f"copy raw.{name} from '{path}' (header false)")
    return {"customers": len(customers), "orders": len(orders), "payments": len(pays)}


def compile_sql(sql):
    deps = sorted(set(re.findall(r"ref\('(\w+)'\)", sql)))
    sql = re.sub(r"\{\{ ref\('(\w+)'\) \}\}", r"main.\1", sql)
    return re.sub(r"\{\{ source\('(\w+)'\) \}\}", r"raw.\1", sql), deps


def waves(graph):
    """Models in topological layers."""
    done, out = set(), []
    while len(done) < len(graph):
        layer = sorted(m for m, deps in graph.items() if m not in done and set(deps) <= done)
        out.append(layer)
        done.update(layer)
    return out


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--customers", type=int, default=8000)
    ap.add_argument("--orders", type=int, default=140000)
    args = ap.parse_args()
    t_start = time.perf_counter()
    log = EventLog(str(uuid.uuid4()))
    log("Running with dbt=1.8.3-lite")
    con = duckdb.connect("jaffle.duckdb")
    con.execute("set threads to 1")
    counts = seed(con, args.customers, args.orders)
    log(f"Registered adapter: duckdb; seeds loaded: {counts}", name="Seeds", **counts)
    compiled = {m: compile_sql(sql) for m, (_, sql) in MODELS.items()}
    log(f"Found {len(MODELS)} models, {len(TESTS)} data tests, 3 sources")
    log(f"Concurrency: {args.threads} threads (target='dev')")
    log()

    def run_model(name):
        t0, started = time.perf_counter(), datetime.now(timezone.utc)
        cur = con.cursor()
        cur.execute(f"create or replace {MODELS[name][0]} main.{name} as {compiled[name][0]}")
        n = cur.execute(f"select count(*) from main.{name}").fetchone()[0]
        return {"unique_id": f"model.jaffle_shop.{name}", "status": "success", "thread_id": threading.current_thread().name,
                "timing": [{"name": "execute", "started_at": started.isoformat(),
                            "completed_at": datetime.now(timezone.utc).isoformat()}],
                "execution_time": time.perf_counter() - t0, "adapter_response": {"rows_affected": n}}

    results, i, total = [], 0, len(MODELS)
    with ThreadPoolExecutor(args.threads, thread_name_prefix="Thread") as pool:
        for layer in waves({m: d for m, (_, d) in compiled.items()}):
            for k, m in enumerate(layer):
                log(f"{i + k + 1} of {total} START sql {MODELS[m][0]} model main.{m} ".ljust(62, ".") + " [RUN]")
            for m, r in zip(layer, pool.map(run_model, layer)):
                i += 1
                rows = r["adapter_response"]["rows_affected"]
                log(f"{i} of {total} OK created sql {MODELS[m][0]} model main.{m} ".ljust(62, ".")
                    + f" [SELECT {rows} in {r['execution_time']:.2f}s]", name="LogModelResult", node=m,
                    rows=rows, execution_time=r["execution_time"])
                results.append(r)
    failed = 0
    for k, (t, sql) in enumerate(sorted(TESTS.items()), 1):
        t0 = time.perf_counter()
        bad = len(con.execute(sql).fetchall())
        failed += bool(bad)
        dt = time.perf_counter() - t0
        log(f"{k} of {len(TESTS)} {'FAIL ' + str(bad) if bad else 'PASS'} {t} ".ljust(62, ".") + f" [in {dt:.2f}s]")
        results.append({"unique_id": f"test.jaffle_shop.{t}", "status": "fail" if bad else "pass", "failures": bad,
                        "execution_time": dt})
    Path("target").mkdir(exist_ok=True)
    for m, (mat, _) in MODELS.items():
        if mat == "table":
            con.execute(f"copy main.{m} to 'target/{m}.parquet' (format parquet)")
    elapsed = time.perf_counter() - t_start
    Path("target/run_results.json").write_text(json.dumps({
        "metadata": {"generated_at": datetime.now(timezone.utc).isoformat(), "invocation_id": log.invocation_id,
                     "python": sys.version.split()[0]},
        "results": results, "elapsed_time": elapsed, "args": vars(args)}, indent=2))
    log()
    log(f"Finished running 3 view models, 4 table models, {len(TESTS)} data tests in 0 hours 0 minutes and "
        f"{elapsed:.2f} seconds ({elapsed:.2f}s).")
    top = con.execute("select city, revenue from main.city_rank where rnk <= 3 order by rnk").fetchall()
    for city, rev in top:
        print(f"           top city {city:<22} {rev:>12}")
    log("Completed successfully" if not failed else f"Completed with {failed} errors")
    log(f"Done. PASS={len(results) - failed} WARN=0 ERROR={failed} SKIP=0 TOTAL={len(results)}")
    con.close()


if __name__ == "__main__":
    main()
