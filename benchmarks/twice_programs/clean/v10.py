"""A little dbt project (staging, marts, tests) run against DuckDB, with dbt's console log and artifacts.

Output follows dbt (https://github.com/hashmapinc/dbt-demos/issues/2, https://github.com/elementary-data/elementary/issues/830,
https://github.com/dbt-labs/dbt-core/issues/8518): START/OK lines, run_results.json with timing and execution_time.
"""
import hashlib
import json
import os
import random
import re
import threading
import time
import uuid
from datetime import datetime, timedelta, timezone

import duckdb

INVOCATION = str(uuid.uuid4())
SEEDS = {"raw_customers": 3000, "raw_orders": 150000, "raw_payments": 200000}
MODELS = {
    "stg_customers": ("view", "select id as customer_id, first_name, city from {{ ref('raw_customers') }}"),
    "stg_orders": ("view", "select id as order_id, customer_id, order_date, status from {{ ref('raw_orders') }}"),
    "stg_payments": ("view", "select id as payment_id, order_id, method, amount / 100.0 as amount from {{ ref('raw_payments') }}"),
    "orders": ("table", """select o.order_id, o.customer_id, o.order_date, o.status,
        coalesce(sum(p.amount), 0) as amount, count(p.payment_id) as n_payments
        from {{ ref('stg_orders') }} o left join {{ ref('stg_payments') }} p using (order_id) group by all order by order_id"""),
    "customers": ("table", """select c.customer_id, c.first_name, c.city, min(o.order_date) as first_order,
        max(o.order_date) as last_order, count(o.order_id) as n_orders, coalesce(sum(o.amount), 0) as lifetime_value
        from {{ ref('stg_customers') }} c left join {{ ref('orders') }} o using (customer_id) group by all order by customer_id"""),
    "city_month": ("table", """select c.city, date_trunc('month', o.order_date) as month, count(*) as n, sum(o.amount) as revenue
        from {{ ref('orders') }} o join {{ ref('stg_customers') }} c using (customer_id) group by all order by 1, 2"""),
    "audit": ("table", """select 'orders' as model, count(*) as n_rows, '{{ invocation_id }}' as invocation_id, now() as loaded_at
        from {{ ref('orders') }}"""),
}
TESTS = {
    "not_null_customers_customer_id": "select * from main.customers where customer_id is null",
    "unique_orders_order_id": "select order_id from main.orders group by 1 having count(*) > 1",
    "accepted_values_orders_status": "select * from main.orders where status not in ('placed','shipped','completed','returned')",
    "relationships_orders_customer_id": "select * from main.orders o anti join main.customers c using (customer_id)",
    "assert_positive_amount": "select * from main.orders where amount < 0",
}
LOGFILE = None


def say(msg, color=""):
    now = datetime.now()
    print(f"{now:%H:%M:%S}  {msg}")
    LOGFILE.write(f"{now:%H:%M:%S.%f} [info ] [{threading.current_thread().name}]: {msg}\n")


def debug(msg):
    LOGFILE.write(f"{datetime.now():%H:%M:%S.%f} [debug] [{threading.current_thread().name}]: {msg}\n")


def iso():
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def pad(left, right, width=80):
    return left + " " + "." * max(3, width - len(left) - 1) + " " + right


def seed(con):
    r = random.Random(17)
    os.makedirs("seeds", exist_ok=True)
    rows = {
        "raw_customers": ("id,first_name,city", [(i, r.choice("Ada Ben Cleo Dan Eva Finn Gus Hal".split()),
                          r.choice(["Oslo", "Lima", "Bern", "Cork", "Nice"])) for i in range(1, 3001)]),
        "raw_orders": ("id,customer_id,order_date,status", [(i, r.randint(1, 3000),
                       str(datetime(2023, 1, 1).date() + timedelta(days=r.randrange(365))),
                       r.choice(["placed", "shipped", "completed", "returned"])) for i in range(1, 150001)]),
        "raw_payments": ("id,order_id,method,amount", [(i, r.randint(1, 150000), r.choice(["card", "coupon", "transfer"]),
                         r.randrange(100, 9000)) for i in range(1, 200001)]),
    }
    for name, (head, data) in rows.items():
        with open(f"seeds/{name}.csv", "w") as f:
            f.write(head + "\n" + "\n".join(",".join(map(str, x)) for x in data) + "\n")
        con.execute(f"create table main.{name} as select * from read_csv_auto('seeds/{name}.csv')")


def compile_sql(sql):
    sql = re.sub(r"\{\{ ref\('(\w+)'\) \}\}", r"main.\1", sql)
    return sql.replace("{{ invocation_id }}", INVOCATION)


def node(kind, name, fn):
    started = iso()
    t = time.perf_counter()
    compiled = iso()
    status, message, extra = fn()
    return {"status": status, "timing": [{"name": "compile", "started_at": started, "completed_at": compiled},
                                         {"name": "execute", "started_at": compiled, "completed_at": iso()}],
            "thread_id": threading.current_thread().name, "execution_time": time.perf_counter() - t,
            "adapter_response": {"_message": message}, "message": message, "unique_id": f"{kind}.shop.{name}", **extra}


def main():
    global LOGFILE
    os.makedirs("logs")
    os.makedirs("target/compiled")
    LOGFILE = open("logs/dbt.log", "w")
    LOGFILE.write(f"\n\n============================== {datetime.now()} | {INVOCATION} ==============================\n")
    begin = time.time()
    con = duckdb.connect("shop.duckdb", config={"threads": 1})
    say("Running with dbt=1.7.4")
    say("Registered adapter: duckdb=1.7.0")
    say(f"Found {len(MODELS)} models, {len(SEEDS)} seeds, {len(TESTS)} tests, 0 sources, 0 exposures, 0 metrics, 391 macros")
    say("")
    seed(con)
    say("Concurrency: 1 threads (target='dev')")
    say("")
    results, total = [], len(MODELS) + len(TESTS)
    for i, (name, (mat, sql)) in enumerate(MODELS.items(), 1):
        say(pad(f"{i} of {total} START sql {mat} model main.{name}", "[RUN]"))
        csql = compile_sql(sql)
        with open(f"target/compiled/{name}.sql", "w") as f:
            f.write(csql + "\n")
        debug(f'On model.shop.{name}: /* {{"app": "dbt", "node_id": "model.shop.{name}"}} */ create {mat} main.{name} as ({csql})')

        def run():
            con.execute(f"create or replace {mat} main.{name} as ({csql})")
            return "success", "OK", {"failures": None, "relation_name": f'"shop"."main"."{name}"',
                                     "checksum": hashlib.sha256(sql.encode()).hexdigest()}
        r = node("model", name, run)
        debug(f"SQL status: OK in {r['execution_time']:.3f} seconds")
        say(pad(f"{i} of {total} OK created sql {mat} model main.{name}", f"[OK in {r['execution_time']:.2f}s]"))
        results.append(r)
    for i, (name, sql) in enumerate(TESTS.items(), len(MODELS) + 1):
        say(pad(f"{i} of {total} START test {name}", "[RUN]"))

        def run():
            n = con.execute(f"select count(*) from ({sql})").fetchone()[0]
            return ("pass" if n == 0 else "fail"), None, {"failures": n}
        r = node("test", name, run)
        say(pad(f"{i} of {total} {r['status'].upper()} {name}", f"[{r['status'].upper()} in {r['execution_time']:.2f}s]"))
        results.append(r)
    el = time.time() - begin
    say("")
    say(f"Finished running 3 view models, 4 table models, {len(TESTS)} tests in 0 hours "
        f"{int(el // 60)} minutes and {el % 60:.2f} seconds ({el:.2f}s).")
    say("")
    bad = sum(r["status"] == "fail" for r in results)
    say("Completed successfully" if not bad else f"Completed with {bad} errors")
    say("")
    say(f"Done. PASS={total - bad} WARN=0 ERROR={bad} SKIP=0 TOTAL={total}")
    with open("target/run_results.json", "w") as f:
        json.dump({"metadata": {"dbt_schema_version": "https://schemas.getdbt.com/dbt/run-results/v5.json", "dbt_version": "1.7.4",
                                "generated_at": iso(), "invocation_id": INVOCATION, "env": {}},
                   "results": results, "elapsed_time": el, "args": {"which": "build", "threads": 1,
                                                                     "project_dir": os.getcwd(), "log_path": "logs"}}, f)
    print(con.execute("select city, count(*) n, round(sum(lifetime_value), 2) ltv from main.customers group by 1 order by 1").fetchall())
    for t in ("orders", "customers", "city_month"):
        con.execute(f"copy main.{t} to 'target/{t}.parquet' (format parquet)")
        con.execute(f"copy main.{t} to 'target/{t}.csv' (header)")
    con.close()
    LOGFILE.close()


if __name__ == "__main__":
    main()
