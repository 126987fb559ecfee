"""Build OMOP style location and provider tables from encounter records.

Report: https://github.com/OHDSI/dbt-synthea/issues/77
Staging models are turned into dimension tables whose keys are used downstream.
"""
import argparse
import logging
import time
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

log = logging.getLogger("dbt")


@dataclass
class Profile:
    encounters: int = 6_000_000
    locations: int = 150_000
    seed: int = 77
    threads: int = 2
    target: str = "omop"


def synthea(profile: Profile) -> pa.Table:
    rng = np.random.default_rng(profile.seed)
    loc = rng.zipf(1.15, size=profile.encounters) % profile.locations
    return pa.table(
        {
            "encounter_id": np.arange(profile.encounters, dtype=np.int64),
            "zip": (10_000 + loc).astype(np.int32),
            "county": ((loc * 7919) % 3001).astype(np.int32),
            "state": (loc % 51).astype(np.int32),
            "provider": rng.integers(0, 4_000, size=profile.encounters).astype(np.int32),
            "cost": np.round(rng.gamma(2.0, 140.0, size=profile.encounters), 2),
        }
    )


STG_LOCATION = """
create or replace table stg_location as
select zip, county, state, count(*) as n_encounters
from raw_encounters
group by zip, county, state
"""

LOCATION = (
    "create or replace table location as "
    "select row_number() over () as location_id, "  # cause
    "zip, county, state, n_encounters "
    "from stg_location"
)

FACT = """
create or replace table visit as
select e.encounter_id, l.location_id, e.provider, e.cost
from raw_encounters e join location l using (zip, county, state)
order by e.encounter_id
"""

PANEL = """
select location_id % 20 as panel, count(*) as visits, sum(cost) as cost
from visit group by 1 order by 1
"""


class Warehouse:
    def __init__(self, profile: Profile):
        self.profile = profile
        self.con = duckdb.connect(":memory:")
        self.con.execute(f"set threads to {profile.threads}")

    def load(self, table: pa.Table):
        self.con.register("incoming", table)
        self.con.execute("create table raw_encounters as select * from incoming order by encounter_id")
        self.con.unregister("incoming")

    def model(self, name: str, sql: str):
        t0 = time.perf_counter()
        self.con.execute(sql)
        n = self.con.execute(f"select count(*) from {name}").fetchone()[0]
        log.info("model %-14s %8d rows %.2fs", name, n, time.perf_counter() - t0)

    def run(self):
        self.model("stg_location", STG_LOCATION)
        self.model("location", LOCATION)
        self.model("visit", FACT)

    def frame(self, sql: str) -> pd.DataFrame:
        return self.con.execute(sql).df()


def treatment_panels(wh: Warehouse) -> pd.DataFrame:
    panel = wh.frame(PANEL)
    panel["mean_cost"] = (panel["cost"] / panel["visits"]).round(6)
    panel["cost"] = panel["cost"].round(2)
    return panel


def sample_locations(wh: Warehouse, k: int, seed: int) -> pd.DataFrame:
    ids = np.random.default_rng(seed).choice(
        wh.frame("select max(location_id) as m from location")["m"][0], size=k, replace=False
    )
    wanted = ",".join(str(i + 1) for i in sorted(ids))
    return wh.frame(f"select * from location where location_id in ({wanted}) order by location_id")


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    ap = argparse.ArgumentParser()
    ap.add_argument("--target", default=Profile.target)
    ap.add_argument("--seed", type=int, default=Profile.seed)
    ns = ap.parse_args()
    profile = Profile(seed=ns.seed, target=ns.target)
    wh = Warehouse(profile)
    wh.load(synthea(profile))
    wh.run()
    panel = treatment_panels(wh)
    audit = sample_locations(wh, 40, profile.seed)
    out = Path(profile.target)
    out.mkdir(exist_ok=True)
    panel.to_csv(out / "panels.csv", index=False)
    audit.to_csv(out / "audit.csv", index=False)
    print(panel.head(5).to_string(index=False))
    print("audited zips", audit["zip"].head(8).tolist())


if __name__ == "__main__":
    main()
