"""Clickstream pipeline with polars (transform) and duckdb (marts), staged through a temporary folder."""
from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
import uuid
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import psutil

OUT = Path("warehouse")
N_USERS, N_EVENTS, SEED = 800, 40_000, 7


@dataclass
class RunContext:
    run_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    steps: list = field(default_factory=list)

    @contextmanager
    def step(self, name):
        print(f"[{datetime.now():%H:%M:%S}] -> {name}", flush=True)
        t0 = time.perf_counter()
        info = {"step": name, "rows": 0}
        yield info
        info["seconds"] = time.perf_counter() - t0
        info["rss_mb"] = psutil.Process(os.getpid()).memory_info().rss / 1e6
        self.steps.append(info)
        print(f"[{datetime.now():%H:%M:%S}] <- {name}: {info['rows']:,} rows in {info['seconds']*1000:.1f} ms", flush=True)


def extract(staging: Path):
    rng = np.random.default_rng(SEED)
    base = datetime(2024, 5, 1)
    seconds = np.sort(rng.integers(0, 14 * 86400, N_EVENTS))
    users = rng.zipf(1.3, N_EVENTS) % N_USERS
    events = pl.DataFrame({
        "event_id": np.arange(N_EVENTS),
        "user_id": users.astype(np.int64),
        "ts": [base + timedelta(seconds=int(s)) for s in seconds],
        "page": rng.choice(["home", "search", "product", "cart", "checkout"], N_EVENTS, p=[.3, .25, .3, .1, .05]),
        "cents": rng.integers(100, 20_000, N_EVENTS),
        "ua": rng.choice(["Chrome/124", "Firefox/125", "Safari/17", "bot/1.0"], N_EVENTS, p=[.6, .15, .2, .05]),
    })
    users = pl.DataFrame({
        "user_id": np.arange(N_USERS),
        "country": rng.choice(["DE", "FR", "PL", "SE"], N_USERS),
        "plan": rng.choice(["free", "pro"], N_USERS, p=[.8, .2]),
    })
    events.write_parquet(staging / "events.parquet")
    users.write_parquet(staging / "users.parquet")
    return events.height + users.height


def sessionize(staging: Path) -> pl.DataFrame:
    gap = pl.duration(minutes=30)
    return (
        pl.scan_parquet(staging / "events.parquet")
        .filter(~pl.col("ua").str.starts_with("bot"))
        .sort(["user_id", "ts", "event_id"])
        .with_columns(
            new=((pl.col("ts") - pl.col("ts").shift(1)).over("user_id") > gap).fill_null(True).cast(pl.Int64))
        .with_columns(session_no=pl.col("new").cum_sum().over("user_id"))
        .with_columns(revenue=pl.when(pl.col("page") == "checkout").then(pl.col("cents")).otherwise(0))
        .collect()
    )


def session_table(ev: pl.DataFrame) -> pl.DataFrame:
    return (
        ev.group_by(["user_id", "session_no"])
        .agg(start=pl.col("ts").min(), end=pl.col("ts").max(), n_events=pl.len(),
             pages=pl.col("page").n_unique(), revenue_cents=pl.col("revenue").sum(),
             converted=(pl.col("page") == "checkout").any())
        .with_columns(duration_s=(pl.col("end") - pl.col("start")).dt.total_seconds())
        .sort(["user_id", "session_no"])
    )


MARTS = {
    "daily": """
        SELECT CAST(s.start AS DATE) AS day, count(*) AS sessions, count(DISTINCT s.user_id) AS users,
               CAST(sum(s.revenue_cents) AS BIGINT) AS revenue_cents, count(*) FILTER (s.converted) AS conversions
        FROM sessions s GROUP BY 1 ORDER BY 1""",
    "by_segment": """
        SELECT u.country, u.plan, count(*) AS sessions, CAST(sum(s.revenue_cents) AS BIGINT) AS revenue_cents,
               median(s.duration_s) AS median_duration_s,
               round(100.0 * count(*) FILTER (s.converted) / count(*), 3) AS conversion_pct
        FROM sessions s JOIN users u USING (user_id) GROUP BY ALL ORDER BY u.country, u.plan""",
    "top_users": """
        SELECT s.user_id, u.country, count(*) AS sessions, CAST(sum(s.revenue_cents) AS BIGINT) AS revenue_cents
        FROM sessions s JOIN users u USING (user_id)
        GROUP BY ALL ORDER BY revenue_cents DESC, s.user_id LIMIT 20""",
}


def build_marts(staging: Path):
    con = duckdb.connect()
    con.execute(f"CREATE VIEW users AS SELECT * FROM read_parquet('{staging}/users.parquet')")
    con.execute(f"CREATE VIEW sessions AS SELECT * FROM read_parquet('{staging}/sessions.parquet')")
    counts = {}
    for name, sql in MARTS.items():
        table = con.sql(sql).pl()
        table.write_csv(OUT / f"mart_{name}.csv")
        counts[name] = table.height
        if name != "top_users":
            print(table)
    con.close()
    return counts


def funnel(ev: pl.DataFrame) -> dict:
    out, reached = {}, None
    for page in ["home", "search", "product", "cart", "checkout"]:
        users = set(ev.filter(pl.col("page") == page)["user_id"].unique().sort().to_list())
        reached = users if reached is None else reached & users
        out[page] = len(reached)
    return out


def main():
    ctx = RunContext()
    print(f"run_id {ctx.run_id} (pid {os.getpid()})")
    OUT.mkdir(exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix="clickstream_"))
    print(f"staging in {staging}")
    pl.Config.set_tbl_rows(20)
    try:
        with ctx.step("extract") as info:
            info["rows"] = extract(staging)
        with ctx.step("sessionize") as info:
            ev = sessionize(staging)
            info["rows"] = ev.height
        with ctx.step("session_table") as info:
            sessions = session_table(ev)
            sessions.write_parquet(staging / "sessions.parquet")
            sessions.write_parquet(OUT / "sessions.parquet")
            info["rows"] = sessions.height
        with ctx.step("marts") as info:
            info["rows"] = sum(build_marts(staging).values())
        with ctx.step("funnel") as info:
            f = funnel(ev)
            info["rows"] = len(f)
            print("funnel:", f)
        (OUT / "funnel.json").write_text(json.dumps(f, indent=1))
    finally:
        shutil.rmtree(staging)
    audit = OUT / "audit_log.csv"
    with audit.open("w") as fh:
        fh.write("run_id,step,rows,seconds,rss_mb,finished_at\n")
        for s in ctx.steps:
            fh.write(f"{ctx.run_id},{s['step']},{s['rows']},{s['seconds']:.6f},{s['rss_mb']:.1f},"
                     f"{datetime.now().isoformat()}\n")
    (OUT / "_last_run.json").write_text(json.dumps(asdict(ctx), indent=1))
    print("OK")


if __name__ == "__main__":
    main()
