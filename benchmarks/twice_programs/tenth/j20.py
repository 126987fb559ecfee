"""Modelled on https://github.com/exmergo/dex/pull/92

Explores a synthetic lap-time warehouse: profiles its tables, samples rows from DuckDB and segments them with k-means.
"""
import argparse
import json
import logging
import time
from dataclasses import asdict, dataclass

import duckdb
import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score
from sklearn.preprocessing import RobustScaler

log = logging.getLogger("explore")


@dataclass
class ClusterConfig:
    table: str = "lap_times"
    columns: tuple = ("milliseconds", "position", "lap", "stint_age")
    sample_rows: int = 1500
    k_range: tuple = (2, 3, 4, 5, 6)
    random_state: int = 0
    data_seed: int = 11
    n_races: int = 14
    n_drivers: int = 20
    laps: int = 55


def make_drivers(rng, n):
    return pd.DataFrame(
        {
            "driver_id": np.arange(1, n + 1),
            "code": [f"D{i:02d}" for i in range(1, n + 1)],
            "skill_ms": rng.normal(0, 450, n).round(1),
            "team": [f"team_{i % 10}" for i in range(n)],
        }
    )


def make_races(rng, n):
    return pd.DataFrame(
        {
            "race_id": np.arange(1, n + 1),
            "circuit": [f"circuit_{i % 7}" for i in range(n)],
            "base_ms": rng.uniform(72000, 104000, n).round(0),
            "wet": rng.random(n) < 0.2,
        }
    )


def make_laps(rng, races, drivers, n_laps):
    frames = []
    for race in races.itertuples():
        grid = rng.permutation(len(drivers))
        for pos, d in enumerate(grid):
            lap = np.arange(1, n_laps + 1)
            stop = int(rng.integers(14, 40))
            age = np.where(lap <= stop, lap, lap - stop)
            ms = race.base_ms + drivers["skill_ms"].iat[d] + 35 * age - 18 * lap + rng.normal(0, 380, n_laps)
            ms = ms + (lap == stop + 1) * 21000 + (lap == 1) * 6500 + race.wet * 8000
            slow = rng.random(n_laps) < 0.01
            ms = ms + slow * rng.gamma(2.0, 15000, n_laps)
            frames.append(
                pd.DataFrame(
                    {
                        "race_id": race.race_id,
                        "driver_id": int(drivers["driver_id"].iat[d]),
                        "lap": lap,
                        "position": np.clip(pos + 1 + rng.integers(-2, 3, n_laps), 1, len(drivers)),
                        "stint_age": age,
                        "milliseconds": ms.round(0),
                    }
                )
            )
    laps = pd.concat(frames, ignore_index=True)
    laps.insert(0, "row_id", np.arange(len(laps)))
    return laps


def build_warehouse(cfg, path):
    rng = np.random.default_rng(cfg.data_seed)
    drivers = make_drivers(rng, cfg.n_drivers)
    races = make_races(rng, cfg.n_races)
    laps = make_laps(rng, races, drivers, cfg.laps)
    con = duckdb.connect(path)
    con.execute("SET threads = 1")
    for name, frame in (("drivers", drivers), ("races", races), ("lap_times", laps)):
        con.register("frame_view", frame)
        con.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM frame_view")
        con.unregister("frame_view")
    return con


def profile(con, table):
    n = con.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    cols = con.execute(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = ? ORDER BY ordinal_position", [table]
    ).fetchall()
    out = {"table": table, "rows": n, "columns": {}}
    for name, dtype in cols:
        distinct, nulls = con.execute(f'SELECT count(DISTINCT "{name}"), count(*) - count("{name}") FROM {table}').fetchone()
        out["columns"][name] = {"type": dtype, "distinct": distinct, "nulls": nulls}
    return out


def find_foreign_keys(con, tables):
    keys = []
    for child in tables:
        for parent in tables:
            pk = f"{parent.rstrip('s')}_id"
            names = [r[0] for r in con.execute(f"DESCRIBE {child}").fetchall()]
            if child == parent or pk not in names:
                continue
            orphan = con.execute(f"SELECT count(*) FROM {child} c ANTI JOIN {parent} p USING ({pk})").fetchone()[0]
            keys.append({"child": child, "column": pk, "parent": parent, "orphans": orphan})
    return keys


def draw_sample(con, cfg):
    cols = ", ".join(f'"{c}"' for c in cfg.columns)
    query = f"SELECT row_id, {cols} FROM {cfg.table} USING SAMPLE reservoir({cfg.sample_rows} ROWS)"
    frame = con.execute(query).df()  # cause
    return frame.sort_values("row_id").reset_index(drop=True)


def cluster(frame, cfg):
    x = RobustScaler().fit_transform(frame[list(cfg.columns)].to_numpy(dtype=float))
    candidates = []
    for k in cfg.k_range:
        km = KMeans(n_clusters=k, n_init=3, random_state=cfg.random_state).fit(x)
        sil = silhouette_score(x, km.labels_, sample_size=800, random_state=cfg.random_state)
        candidates.append({"k": k, "silhouette": float(sil), "inertia": float(km.inertia_), "labels": km.labels_})
    best = max(candidates, key=lambda c: c["silhouette"])
    return best, candidates


def segment_table(frame, labels, cfg):
    df = frame.assign(segment=labels)
    agg = df.groupby("segment")[list(cfg.columns)].median()
    agg.insert(0, "n", df.groupby("segment").size())
    agg.insert(1, "share", agg["n"] / len(df))
    return agg.sort_values("n", ascending=False)


def notes_for(table):
    notes = []
    if table["share"].min() < 0.01:
        notes.append("smallest segment holds under 1% of the rows")
    if table["share"].max() > 0.9:
        notes.append("one segment holds over 90% of the rows")
    return notes


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--db", default=":memory:")
    ap.add_argument("--rows", type=int, default=ClusterConfig.sample_rows)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    cfg = ClusterConfig(sample_rows=args.rows)

    t0 = time.time()
    con = build_warehouse(cfg, args.db)
    tables = ["drivers", "races", "lap_times"]
    profiles = [profile(con, t) for t in tables]
    keys = find_foreign_keys(con, tables)
    for p in profiles:
        print(f"{p['table']:<10} rows={p['rows']:<6} columns={len(p['columns'])}")
    for k in keys:
        print(f"fk {k['child']}.{k['column']} -> {k['parent']} orphans={k['orphans']}")

    frame = draw_sample(con, cfg)
    best, candidates = cluster(frame, cfg)
    table = segment_table(frame, best["labels"], cfg)
    for c in candidates:
        print(f"k={c['k']} silhouette={c['silhouette']:.4f} inertia={c['inertia']:.2f}")
    print(f"chosen k={best['k']}")
    print(table.to_string(float_format=lambda v: f"{v:.3f}"))

    envelope = {
        "config": asdict(cfg),
        "profiles": profiles,
        "foreign_keys": keys,
        "clusters": {"k": best["k"], "silhouette": best["silhouette"], "sizes": [int(v) for v in table["n"]]},
        "notes": notes_for(table),
    }
    with open("explore.json", "w") as fh:
        json.dump(envelope, fh, indent=2)
    table.to_csv("segments.csv", float_format="%.4f")
    con.close()
    log.info("explore finished in %.2fs", time.time() - t0)


if __name__ == "__main__":
    main()
