"""Daily sales ETL as a DAG of tasks with a metadata database.

Modelled on: apache/airflow (airflow/models/taskinstance.py, dagrun.py, xcom.py; log layout
logs/dag_id=../run_id=manual__<date>/task_id=../attempt=1.log): SQLite tables dag_run, task_instance
(start_date, end_date, duration, pid, hostname, job_id), xcom; every task runs in its own process.
The warehouse tables (dim_product, fact_sales, kpi_daily) and the xcom values are the results.
"""
import datetime as dt
import json
import logging
import multiprocessing as mp
import os
import socket
import sqlite3
import sys
import time
import uuid
from pathlib import Path

import numpy as np
import pandas as pd
from sqlalchemy import Column, DateTime, Float, Integer, String, Text, create_engine
from sqlalchemy.orm import Session, declarative_base

DAG_ID, LOGICAL_DATE = "daily_sales", "2024-03-01"
WAREHOUSE, META = "warehouse.db", "airflow.db"
Base = declarative_base()


class DagRun(Base):
    __tablename__ = "dag_run"
    id = Column(Integer, primary_key=True)
    dag_id, run_id, state = Column(String), Column(String), Column(String)
    logical_date = Column(String)
    queued_at, start_date, end_date = Column(DateTime), Column(DateTime), Column(DateTime)
    dag_hash = Column(String)


class TaskInstance(Base):
    __tablename__ = "task_instance"
    task_id = Column(String, primary_key=True)
    run_id = Column(String, primary_key=True)
    try_number, state, operator = Column(Integer), Column(String), Column(String)
    start_date, end_date, duration = Column(DateTime), Column(DateTime), Column(Float)
    hostname, pid, job_id, external_executor_id = Column(String), Column(Integer), Column(Integer), Column(String)


class XCom(Base):
    __tablename__ = "xcom"
    task_id = Column(String, primary_key=True)
    key = Column(String, primary_key=True)
    value = Column(Text)
    timestamp = Column(DateTime)


# -------------------------------------------------------------------- task bodies
def extract_orders(log, xcom):
    rng = np.random.default_rng(20240301)
    n = 5000
    df = pd.DataFrame({"order_id": np.arange(n), "sku": rng.integers(0, 120, n), "qty": rng.poisson(1.4, n) + 1,
                       "day": rng.integers(1, 29, n), "country": rng.choice(["DE", "FR", "NL", "PL"], n)})
    df.to_csv("staging_orders.csv", index=False)
    log.info("Fetched %d rows", n)
    return n


def extract_products(log, xcom):
    rng = np.random.default_rng(77)
    df = pd.DataFrame({"sku": np.arange(120), "price_ct": rng.integers(150, 9900, 120),
                       "category": rng.choice(["food", "garden", "office", "toys"], 120)})
    df.to_csv("staging_products.csv", index=False)
    return len(df)


def load_dim_product(log, xcom):
    df = pd.read_csv("staging_products.csv")
    with sqlite3.connect(WAREHOUSE) as con:
        df.to_sql("dim_product", con, index=False)
    log.info("Loaded %s products into dim_product", xcom["extract_products"])
    return int(df["price_ct"].sum())


def load_fact_sales(log, xcom):
    o, p = pd.read_csv("staging_orders.csv"), pd.read_csv("staging_products.csv")
    f = o.merge(p, on="sku").sort_values("order_id")
    f["revenue_ct"] = f["qty"] * f["price_ct"]
    with sqlite3.connect(WAREHOUSE) as con:
        f[["order_id", "sku", "day", "country", "qty", "revenue_ct"]].to_sql("fact_sales", con, index=False)
    return int(f["revenue_ct"].sum())


def check_quality(log, xcom):
    with sqlite3.connect(WAREHOUSE) as con:
        orphans = con.execute("select count(*) from fact_sales f left join dim_product d using (sku) "
                              "where d.sku is null").fetchone()[0]
        rows = con.execute("select count(*) from fact_sales").fetchone()[0]
    if orphans or rows != xcom["extract_orders"]:
        raise ValueError("quality check failed")
    log.info("%d rows checked, %d orphans", rows, orphans)
    return {"rows": rows, "orphans": orphans}


def build_kpi(log, xcom):
    with sqlite3.connect(WAREHOUSE) as con:
        con.execute("create table kpi_daily as select day, country, count(*) orders, sum(qty) items, "
                    "sum(revenue_ct) revenue_ct from fact_sales group by day, country order by day, country")
        top = con.execute("select category, sum(revenue_ct) r from fact_sales join dim_product using (sku) "
                          "group by category order by r desc").fetchall()
    return {c: int(r) for c, r in top}


DAG = {extract_orders: [], extract_products: [], load_dim_product: [extract_products],
       load_fact_sales: [extract_orders, extract_products], check_quality: [load_fact_sales, load_dim_product],
       build_kpi: [check_quality]}


def now():
    return dt.datetime.now(dt.timezone.utc).replace(tzinfo=None)


def supervise(func, run_id, xcom, queue):
    path = Path("logs") / f"dag_id={DAG_ID}" / f"run_id={run_id}" / f"task_id={func.__name__}" / "attempt=1.log"
    path.parent.mkdir(parents=True)
    h = logging.FileHandler(path)
    h.setFormatter(logging.Formatter("[%(asctime)s] {%(filename)s:%(lineno)d} %(levelname)s - %(message)s"))
    log = logging.getLogger("airflow.task")
    log.handlers, log.propagate = [h], False
    log.setLevel(logging.INFO)
    start = now()
    log.info("Executing <Task(PythonOperator): %s> on %s", func.__name__, LOGICAL_DATE)
    log.info("Started process %d to run task on host %s", os.getpid(), socket.gethostname())
    value = func(log, xcom)
    end = now()
    log.info("Done. Returned value was: %s", value)
    log.info("Marking task as SUCCESS. dag_id=%s, task_id=%s, run_id=%s, start_date=%s, end_date=%s", DAG_ID,
             func.__name__, run_id, start.strftime("%Y%m%dT%H%M%S"), end.strftime("%Y%m%dT%H%M%S"))
    queue.put((value, start, end, os.getpid()))


def main():
    run_id = f"manual__{dt.datetime.now(dt.timezone.utc).isoformat()}"
    engine = create_engine(f"sqlite:///{META}")
    Base.metadata.create_all(engine)
    ctx = mp.get_context("fork")
    xcom, t0 = {}, time.time()
    with Session(engine) as s:
        run = DagRun(dag_id=DAG_ID, run_id=run_id, state="running", logical_date=LOGICAL_DATE, queued_at=now(),
                     start_date=now(), dag_hash=uuid.uuid4().hex)
        s.add(run)
        for job, func in enumerate(DAG, 1):
            assert all(d.__name__ in xcom for d in DAG[func])
            queue = ctx.Queue()
            p = ctx.Process(target=supervise, args=(func, run_id, xcom, queue))
            print(f"[{now():%Y-%m-%dT%H:%M:%S.%f}] {{scheduler_job.py:598}} INFO - Sending TaskInstanceKey("
                  f"dag_id='{DAG_ID}', task_id='{func.__name__}', run_id='{run_id}', try_number=1)", file=sys.stderr)
            p.start()
            value, start, end, pid = queue.get()
            p.join()
            xcom[func.__name__] = value
            s.add(TaskInstance(task_id=func.__name__, run_id=run_id, try_number=1, state="success",
                               operator="PythonOperator", start_date=start, end_date=end,
                               duration=(end - start).total_seconds(), hostname=socket.gethostname(), pid=pid,
                               job_id=job, external_executor_id=str(uuid.uuid4())))
            s.add(XCom(task_id=func.__name__, key="return_value", value=json.dumps(value), timestamp=now()))
        run.state, run.end_date = "success", now()
        s.commit()
    print(f"DagRun Finished: run_duration={time.time() - t0:.6f}, state=success, run_id={run_id}", file=sys.stderr)
    for task, value in xcom.items():
        print(f"{task:18s} -> {value}")


if __name__ == "__main__":
    main()
