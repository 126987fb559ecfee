"""A small DAG scheduler with two worker threads, retries, XComs and a metadata database, logging like Airflow.

Output follows Apache Airflow (https://github.com/apache/airflow/issues/11234, https://github.com/apache/airflow/issues/17507):
per-try task logs under dag_id=/run_id=/task_id=, "Task exited with return code 0", TaskInstance Finished lines with
run_start_date and run_duration, a SQLite metadata database.
"""
import hashlib
import json
import logging
import os
import random
import socket
import sqlite3
import threading
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from datetime import datetime, timezone
from pathlib import Path

import pandas as pd

DAG_ID = "daily_sales"
NOW = datetime.now(timezone.utc)
RUN_ID = f"manual__{NOW.isoformat()}"
REGIONS = ["north", "south", "east", "west"]
root = logging.getLogger("airflow.scheduler")
lock = threading.Lock()


class FlakyUpstream(Exception):
    pass


def seed_of(text):
    return int.from_bytes(hashlib.md5(text.encode()).digest()[:4], "big")


def extract(region, ctx):
    if ctx["try_number"] == 1 and region in ("south", "west"):
        raise FlakyUpstream("HTTP 503 from upstream")
    r = random.Random(seed_of(region))
    rows = [{"day": d, "sku": f"S{r.randrange(20):02d}", "qty": r.randrange(1, 9), "price": r.randrange(199, 9999) / 100}
            for d in range(1, 29) for _ in range(400)]
    Path("data").mkdir(exist_ok=True)
    pd.DataFrame(rows).to_csv(f"data/{region}.csv", index=False)
    time.sleep(0.3)
    return {"rows": len(rows), "path": f"data/{region}.csv"}


def transform(region, ctx):
    df = pd.read_csv(ctx["xcom"][f"extract_{region}"]["path"])
    df["revenue"] = (df.qty * df.price).round(2)
    agg = df.groupby(["day", "sku"], sort=True).agg(qty=("qty", "sum"), revenue=("revenue", "sum")).round(2).reset_index()
    agg.to_csv(f"data/{region}_agg.csv", index=False)
    ctx["log"].info("Aggregated %d rows into %d", len(df), len(agg))
    return {"revenue": round(float(agg.revenue.sum()), 2), "groups": len(agg)}


def merge(ctx):
    parts = [pd.read_csv(f"data/{r}_agg.csv").assign(region=r) for r in REGIONS]
    df = pd.concat(parts, ignore_index=True).sort_values(["day", "sku", "region"], kind="stable")
    df.to_csv("data/all.csv", index=False)
    best = df.groupby("sku").revenue.sum().round(2).sort_values(ascending=False, kind="stable").head(5)
    return {"total": round(float(df.revenue.sum()), 2), "best": {k: float(v) for k, v in best.items()}}


def check(ctx):
    total = round(sum(ctx["xcom"][f"transform_{r}"]["revenue"] for r in REGIONS), 2)
    assert abs(total - ctx["xcom"]["merge"]["total"]) < 0.01
    return {"ok": True}


def publish(ctx):
    m = ctx["xcom"]["merge"]
    Path("report.html").write_text(f"<html><h1>{DAG_ID}</h1><p>Generated at {datetime.now():%Y-%m-%d %H:%M:%S} (run {RUN_ID})</p>"
                                   f"<p>Total {m['total']:.2f}</p><pre>{json.dumps(m['best'], indent=1)}</pre></html>")
    return None


TASKS = {**{f"extract_{r}": (lambda ctx, r=r: extract(r, ctx), []) for r in REGIONS},
         **{f"transform_{r}": (lambda ctx, r=r: transform(r, ctx), [f"extract_{r}"]) for r in REGIONS},
         "merge": (merge, [f"transform_{r}" for r in REGIONS]), "check": (check, ["merge"]), "publish": (publish, ["check"])}


def run_task(tid, fn, try_number, xcom):
    folder = Path("logs") / f"dag_id={DAG_ID}" / f"run_id={RUN_ID}" / f"task_id={tid}"
    with lock:
        folder.mkdir(parents=True, exist_ok=True)
    log = logging.getLogger(f"task.{tid}.{try_number}")
    log.propagate = False
    h = logging.FileHandler(folder / f"attempt={try_number}.log")
    h.setFormatter(logging.Formatter("[%(asctime)s] {%(filename)s:%(lineno)d} %(levelname)s - %(message)s"))
    log.addHandler(h)
    log.setLevel(logging.INFO)
    log.info("Dependencies all met for <TaskInstance: %s.%s %s [queued]>", DAG_ID, tid, RUN_ID)
    log.info("Starting attempt %d of 3", try_number)
    log.info("Started process %d to run task (thread %s, %d)", os.getpid(), threading.current_thread().name, threading.get_ident())
    log.info("Running <TaskInstance: %s.%s %s [running]> on host %s", DAG_ID, tid, RUN_ID, socket.gethostname())
    start, state, value = datetime.now(timezone.utc), "success", None
    try:
        value = fn({"try_number": try_number, "xcom": xcom, "log": log})
        log.info("Done. Returned value was: %s", value)
        log.info("Marking task as SUCCESS. dag_id=%s, task_id=%s, execution_date=%s, start_date=%s, end_date=%s", DAG_ID, tid,
                 NOW.strftime("%Y%m%dT%H%M%S"), start.strftime("%Y%m%dT%H%M%S"), datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S"))
    except FlakyUpstream as e:
        state = "up_for_retry"
        log.error("Task failed with exception: %s", e)
    end = datetime.now(timezone.utc)
    log.info("Task exited with return code %d", 0 if state == "success" else 1)
    h.close()
    return tid, state, value, start, end, threading.current_thread().name


def main():
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] {%(filename)s:%(lineno)d} %(levelname)s - %(message)s")
    db = sqlite3.connect("airflow.db")
    db.execute("create table task_instance (task_id text, run_id text, try_number int, state text, start_date text, end_date text, "
               "duration real, hostname text, pid int, worker text, primary key (task_id, try_number))")
    db.execute("create table xcom (task_id text primary key, value text, timestamp text)")
    db.execute("create table dag_run (run_id text, state text, start_date text, end_date text)")
    root.info("Created <DagRun %s @ %s: %s, state:running, queued_at: %s. externally triggered: True>", DAG_ID, NOW, RUN_ID,
              datetime.now(timezone.utc))
    pushed = {}
    xcom, done, tries, running = {}, set(), {t: 0 for t in TASKS}, {}
    with ThreadPoolExecutor(2, thread_name_prefix="LocalExecutor") as pool:
        while len(done) < len(TASKS):
            for tid, (fn, deps) in TASKS.items():
                if tid not in done and tid not in running.values() and all(d in done for d in deps):
                    tries[tid] += 1
                    running[pool.submit(run_task, tid, fn, tries[tid], dict(xcom))] = tid
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for fut in sorted(finished, key=lambda f: list(TASKS).index(running[f])):
                tid, state, value, start, end, worker = fut.result()
                del running[fut]
                root.info("TaskInstance Finished: dag_id=%s, task_id=%s, run_id=%s, map_index=-1, run_start_date=%s, run_end_date=%s, "
                          "run_duration=%s, state=%s, try_number=%d, max_tries=2, pool=default_pool", DAG_ID, tid, RUN_ID, start, end,
                          (end - start).total_seconds(), state, tries[tid])
                db.execute("insert into task_instance values (?,?,?,?,?,?,?,?,?,?)", (tid, RUN_ID, tries[tid], state, start.isoformat(),
                           end.isoformat(), (end - start).total_seconds(), socket.gethostname(), os.getpid(), worker))
                if state == "success":
                    done.add(tid)
                    xcom[tid] = value
                    pushed[tid] = datetime.now(timezone.utc).isoformat()
    db.executemany("insert into xcom values (?,?,?)", [(t, json.dumps(xcom[t]), pushed[t]) for t in TASKS])
    end = datetime.now(timezone.utc)
    db.execute("insert into dag_run values (?,?,?,?)", (RUN_ID, "success", NOW.isoformat(), end.isoformat()))
    db.commit()
    root.info("Marking run <DagRun %s @ %s> successful", DAG_ID, NOW)
    print(f"{'task_id':<18} {'tries':>5} {'duration':>10}  value")
    for tid in TASKS:
        d = db.execute("select sum(duration) from task_instance where task_id=?", (tid,)).fetchone()[0]
        print(f"{tid:<18} {tries[tid]:>5} {d:>9.3f}s  {json.dumps(xcom[tid])}")
    print(f"dag run took {(end - NOW).total_seconds():.2f}s")


if __name__ == "__main__":
    main()
