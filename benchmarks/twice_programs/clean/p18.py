"""A model graph run in DuckDB by threads, with dbt's console lines, JSON log and run_results.json.

Formats: https://github.com/hashmapinc/dbt-demos/issues/2 (console), https://github.com/dbt-labs/dbt-core/pull/6572 (JSON log),
https://github.com/dbt-labs/dbt-core/issues/4448 (run_results.json: timing, thread_id, execution_time)
"""
import json
import os
import queue
import threading
import time
import uuid
from datetime import datetime, timezone

import duckdb
import numpy as np
import pandas as pd

SEED, THREADS = 2024, 3
INVOCATION = str(uuid.uuid4())
LOCK = threading.Lock()
JLOG = open("dbt.log", "w")

MODELS = {
    "stg_orders": ("view", [], "select order_id, customer_id, order_day, cast(amount_cents as bigint) as cents, status from raw_orders"),
    "stg_customers": ("view", [], "select customer_id, upper(country) as country, signup_day from raw_customers"),
    "stg_items": ("view", [], "select order_id, sku, qty, price_cents from raw_items"),
    "int_order_items": ("table", ["stg_items"],
                        "select order_id, sum(qty) as units, sum(qty*price_cents) as item_cents, count(distinct sku) as skus "
                        "from stg_items group by order_id"),
    "orders": ("table", ["stg_orders", "int_order_items"],
               "select o.*, i.units, i.item_cents, i.skus from stg_orders o join int_order_items i using (order_id) "
               "where status <> 'cancelled'"),
    "customers": ("table", ["stg_customers", "orders"],
                  "select c.customer_id, c.country, count(o.order_id) as n_orders, coalesce(sum(o.cents),0) as cents, "
                  "min(o.order_day) as first_day, max(o.order_day) as last_day from stg_customers c "
                  "left join orders o using (customer_id) group by 1,2"),
    "daily_revenue": ("table", ["orders"],
                      "select order_day, country, sum(cents) as cents, count(*) as n from orders join stg_customers "
                      "using (customer_id) group by 1,2"),
    "revenue_7d": ("table", ["daily_revenue"],
                   "select order_day, country, sum(cents) over (partition by country order by order_day "
                   "range between 6 preceding and current row) as cents_7d from daily_revenue"),
    "cohorts": ("table", ["customers"],
                "select country, first_day // 30 as cohort, count(*) as n, sum(cents) as cents from customers "
                "where n_orders > 0 group by 1,2"),
    "top_skus": ("table", ["stg_items"],
                 "select sku, sum(qty) as units, sum(qty*price_cents) as cents from stg_items group by sku "
                 "order by cents desc, sku limit 50"),
}
TESTS = {
    "unique_orders_order_id": ("orders", "select order_id from orders group by 1 having count(*) > 1"),
    "not_null_customers_country": ("customers", "select * from customers where country is null"),
    "positive_daily_revenue": ("daily_revenue", "select * from daily_revenue where cents < 0"),
    "reconcile_revenue": ("daily_revenue", "select * from (select sum(cents) a from orders) , (select sum(cents) b from daily_revenue) where a <> b"),
}


def utc():
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def emit(name, code, msg, show=True, **data):
    with LOCK:
        if show:
            print(f"{time.strftime('%H:%M:%S')} | {msg}", flush=True)
        JLOG.write(json.dumps({"data": data, "info": {"category": "", "code": code, "extra": {}, "invocation_id": INVOCATION,
                                                      "level": "info", "msg": msg, "name": name, "pid": os.getpid(),
                                                      "thread": threading.current_thread().name, "ts": utc()}}) + "\n")


def seeds(con):
    rng = np.random.default_rng(SEED)
    n, c, items = 600000, 40000, 1800000
    frames = {
        "raw_orders": pd.DataFrame({"order_id": np.arange(n), "customer_id": rng.integers(0, c, n),
                                    "order_day": rng.integers(0, 365, n), "amount_cents": rng.integers(100, 90000, n),
                                    "status": rng.choice(["placed", "shipped", "returned", "cancelled"], n, p=[.2, .6, .1, .1])}),
        "raw_customers": pd.DataFrame({"customer_id": np.arange(c), "country": rng.choice(["de", "fr", "us", "jp", "br"], c),
                                       "signup_day": rng.integers(0, 300, c)}),
        "raw_items": pd.DataFrame({"order_id": rng.integers(0, n, items), "sku": rng.integers(1000, 1800, items),
                                   "qty": rng.integers(1, 6, items), "price_cents": rng.integers(50, 20000, items)}),
    }
    for name, df in frames.items():
        con.register("tmp_df", df)
        con.execute(f"create table {name} as select * from tmp_df")
        con.unregister("tmp_df")
        emit("LogSeedResult", "Q016", f"OK loaded seed file main.{name} [INSERT {len(df)}]", rows=len(df))


class Runner:
    def __init__(self, con):
        self.con, self.results, self.done = con, [], set()
        self.queue, self.pending = queue.Queue(), dict(MODELS)
        self.cv = threading.Condition()
        self.index = 0

    def ready(self):
        for m in [m for m, (_, deps, _) in self.pending.items() if all(d in self.done for d in deps)]:
            del self.pending[m]
            self.queue.put(m)

    def work(self):
        cur = self.con.cursor()
        while True:
            m = self.queue.get()
            if m is None:
                return
            kind, _, sql = MODELS[m]
            with LOCK:
                self.index += 1
                k = self.index
            emit("LogStartLine", "Q011", f"{k} of {len(MODELS)} START {kind} model main.{m} ".ljust(66, ".") + " [RUN]", node=m)
            c0, t0 = utc(), time.perf_counter()
            compiled = f"create {kind} {m} as ({sql})"
            c1 = utc()
            e0 = utc()
            cur.execute(compiled)
            rows = cur.execute(f"select count(*) from {m}").fetchone()[0]
            e1, dt = utc(), time.perf_counter() - t0
            res = {"status": "success", "timing": [{"name": "compile", "started_at": c0, "completed_at": c1},
                                                   {"name": "execute", "started_at": e0, "completed_at": e1}],
                   "thread_id": threading.current_thread().name, "execution_time": dt, "adapter_response": {"rows_affected": rows},
                   "message": f"SELECT {rows}", "failures": None, "unique_id": f"model.shop.{m}"}
            emit("LogModelResult", "Q012", f"{k} of {len(MODELS)} OK created {kind} model main.{m} ".ljust(66, ".")
                 + f" [SUCCESS {rows} in {dt:.2f}s]", node=m, execution_time=dt)
            with self.cv:
                self.results.append(res)
                self.done.add(m)
                self.ready()
                self.cv.notify()

    def run(self):
        with self.cv:
            self.ready()
        ts = [threading.Thread(target=self.work, name=f"Thread-{i + 1}") for i in range(THREADS)]
        for t in ts:
            t.start()
        with self.cv:
            while len(self.done) < len(MODELS):
                self.cv.wait()
        for _ in ts:
            self.queue.put(None)
        for t in ts:
            t.join()


def main():
    t0 = time.perf_counter()
    print("Running with dbt=1.4.0", flush=True)
    emit("MainReportVersion", "A001", "Running with dbt=1.4.0", show=False)
    con = duckdb.connect(":memory:")
    con.execute("set threads to 1")
    seeds(con)
    emit("FoundStats", "W006", f"Found {len(MODELS)} models, {len(TESTS)} tests, 0 snapshots, 3 seed files")
    emit("ConcurrencyLine", "Q027", f"Concurrency: {THREADS} threads (target='dev')")
    r = Runner(con)
    r.run()
    n_view = sum(k == "view" for k, _, _ in MODELS.values())
    emit("FinishedRunningStats", "E047", f"Finished running {len(MODELS) - n_view} table models, {n_view} view models "
         f"in {time.perf_counter() - t0:.2f}s.")
    passed = 0
    for i, (name, (model, sql)) in enumerate(TESTS.items(), 1):
        t = time.perf_counter()
        bad = len(con.execute(sql).fetchall())
        dt = time.perf_counter() - t
        passed += bad == 0
        emit("LogTestResult", "Q007", f"{i} of {len(TESTS)} {'PASS' if not bad else 'FAIL ' + str(bad)} {name} ".ljust(66, ".")
             + f" [{'PASS' if not bad else 'FAIL'} in {dt:.2f}s]")
        r.results.append({"status": "pass" if not bad else "fail", "timing": [], "thread_id": "MainThread", "execution_time": dt,
                          "adapter_response": {}, "message": None, "failures": bad, "unique_id": f"test.shop.{name}"})
    for table, key in (("customers", "customer_id"), ("revenue_7d", "country, order_day")):
        con.execute(f"select * from {table} order by {key}").df().to_parquet(f"{table}.parquet", index=False)
    con.execute("select * from cohorts order by 1,2").df().to_csv("cohorts.csv", index=False)
    with open("run_results.json", "w") as f:
        json.dump({"metadata": {"dbt_schema_version": "https://schemas.getdbt.com/dbt/run-results/v4.json", "dbt_version": "1.4.0",
                                "generated_at": utc(), "invocation_id": INVOCATION, "env": {}},
                   "results": r.results, "elapsed_time": time.perf_counter() - t0, "args": {"which": "build", "threads": THREADS}}, f)
    print("\nCompleted successfully\n")
    total = con.execute("select sum(cents), sum(n) from daily_revenue").fetchone()
    print(f"Done. PASS={len(MODELS) + passed} WARN=0 ERROR={len(TESTS) - passed} SKIP=0 TOTAL={len(MODELS) + len(TESTS)}")
    print(f"revenue {total[0]} cents in {total[1]} orders")


if __name__ == "__main__":
    main()
