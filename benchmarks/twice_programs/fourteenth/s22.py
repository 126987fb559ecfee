"""Continuous drug exposure eras from event data.

Modelled on https://github.com/duckdb/duckdb/issues/8041
Builds exposure eras of patients in a database and estimates persistence curves.
"""
import argparse
import json
import logging
import time
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd

log = logging.getLogger("eras")


@dataclass
class EraConfig:
    seed: int = 55
    persons: int = 60_000
    exposures: int = 500_000
    threads: int = 4
    horizon: int = 720
    max_days: int = 90


def make_exposures(cfg):
    rng = np.random.default_rng(cfg.seed)
    person = rng.integers(0, cfg.persons, cfg.exposures)
    start = rng.integers(0, cfg.horizon, cfg.exposures)
    days = rng.choice([0, 7, 14, 28, cfg.max_days], size=cfg.exposures, p=[.2, .3, .2, .2, .1])
    return pd.DataFrame({"person_id": person, "start_day": start, "end_day": start + days})


class Database:
    def __init__(self, cfg):
        self.cfg = cfg
        self.con = duckdb.connect()
        self.con.execute(f"SET threads = {cfg.threads}")

    def load(self, exposures):
        self.con.register("frame", exposures)
        self.con.execute("CREATE TABLE raw_data AS SELECT * FROM frame")
        self.con.unregister("frame")

    def build_events(self):
        self.con.execute(
            "CREATE VIEW events AS "
            "SELECT person_id, start_day AS event_day, -1 AS event_type FROM raw_data "
            "UNION ALL "
            "SELECT person_id, end_day AS event_day, 1 AS event_type FROM raw_data"
        )

    def era_ends(self):
        window = "PARTITION BY person_id ORDER BY event_day ROWS UNBOUNDED PRECEDING"  # cause
        self.con.execute(
            "CREATE TABLE ends AS SELECT person_id, event_day AS end_day FROM ("
            f"SELECT person_id, event_day, SUM(event_type) OVER ({window}) AS status FROM events"
            ") WHERE status = 0"
        )

    def eras(self):
        return self.con.execute(
            "WITH spans AS ("
            " SELECT r.person_id, r.start_day, MIN(e.end_day) AS end_day"
            " FROM raw_data r JOIN ends e"
            " ON r.person_id = e.person_id AND e.end_day >= r.start_day"
            " GROUP BY r.person_id, r.start_day)"
            " SELECT person_id, MIN(start_day) AS start_day, end_day, COUNT(*) AS exposures"
            " FROM spans GROUP BY person_id, end_day"
            " ORDER BY person_id, end_day"
        ).df()


def persistence(eras, horizon):
    length = (eras["end_day"] - eras["start_day"]).to_numpy()
    grid = np.arange(0, 181, 30)
    observed = eras["end_day"].to_numpy() < horizon
    curve = []
    survival = 1.0
    for lo, hi in zip(grid[:-1], grid[1:]):
        at_risk = (length >= lo).sum()
        stopped = ((length >= lo) & (length < hi) & observed).sum()
        survival *= 1 - stopped / max(at_risk, 1)
        curve.append({"day": int(hi), "at_risk": int(at_risk), "survival": float(survival)})
    return pd.DataFrame(curve)


def by_person(eras):
    per = eras.assign(length=eras.end_day - eras.start_day).groupby("person_id").agg(
        eras=("length", "size"), days=("length", "sum"), exposures=("exposures", "sum"))
    return per


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--exposures", type=int, default=EraConfig.exposures)
    ap.add_argument("--seed", type=int, default=EraConfig.seed)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    cfg = EraConfig(exposures=args.exposures, seed=args.seed)
    db = Database(cfg)
    t0 = time.perf_counter()
    db.load(make_exposures(cfg))
    db.build_events()
    db.era_ends()
    eras = db.eras()
    log.info("%d eras in %.2f s", len(eras), time.perf_counter() - t0)
    curve = persistence(eras, cfg.horizon)
    per = by_person(eras)
    out = Path("eras_out")
    out.mkdir(exist_ok=True)
    eras.to_parquet(out / "eras.parquet")
    curve.to_csv(out / "persistence.csv", index=False)
    summary = {
        "eras": len(eras),
        "mean_length": round(float((eras.end_day - eras.start_day).mean()), 6),
        "mean_eras": round(float(per.eras.mean()), 6),
        "covered_days": int(per.days.sum()),
    }
    (out / "summary.json").write_text(json.dumps(summary, indent=1))
    print(json.dumps(summary))
    print(curve.round(6).to_string(index=False))


if __name__ == "__main__":
    main()
