"""Taxi-trip fare audit on a sample of a DuckDB table.

Modelled on https://github.com/duckdb/duckdb/issues/14323
Loads synthetic trips, samples some for audit, fits a fare model and lists outliers.
"""
import argparse
import json
import logging
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd

log = logging.getLogger("fare_audit")

BOROUGHS = ["centre", "harbour", "airport", "hills", "campus"]


@dataclass
class AuditConfig:
    seed: float = 0.1
    data_seed: int = 2024
    trips: int = 20000
    audit_size: int = 600
    outlier_sigma: float = 2.5
    database: str = ":memory:"
    out_dir: str = "audit"


def make_trips(cfg):
    rng = np.random.default_rng(cfg.data_seed)
    n = cfg.trips
    distance = rng.gamma(2.0, 2.2, size=n)
    hour = rng.integers(0, 24, size=n)
    zone = rng.choice(len(BOROUGHS), size=n, p=[0.35, 0.2, 0.15, 0.1, 0.2])
    duration = distance * rng.normal(3.0, 0.4, size=n).clip(1.5) + rng.exponential(3, size=n)
    fare = 3.0 + 1.8 * distance + 0.35 * duration + 2.0 * (zone == 2)
    fare += np.where((hour >= 22) | (hour < 5), 1.5, 0.0) + rng.normal(0, 1.2, size=n)
    odd = rng.random(n) < 0.02
    fare[odd] *= rng.uniform(1.3, 2.0, size=odd.sum())
    return pd.DataFrame({
        "trip_id": np.arange(n),
        "zone": [BOROUGHS[z] for z in zone],
        "hour": hour,
        "distance": distance.round(3),
        "duration": duration.round(2),
        "fare": fare.round(2),
    })


class TripStore:
    def __init__(self, path):
        self.con = duckdb.connect(path)
        self.con.execute("SET threads = 1")

    def query(self, sql):
        with self.con.cursor() as cursor:
            return cursor.execute(sql).df()  # cause

    def load(self, frame):
        self.con.register("incoming", frame)
        self.con.execute("CREATE OR REPLACE TABLE trips AS SELECT * FROM incoming ORDER BY trip_id")
        self.con.unregister("incoming")
        count = self.con.execute("SELECT count(*) FROM trips").fetchone()[0]
        log.info("loaded %d trips", count)

    def set_seed(self, value):
        self.con.execute("SELECT setseed(?)", [value]).fetchall()

    def zone_summary(self):
        return self.query("""
            SELECT zone, count(*) AS trips, round(avg(fare), 3) AS mean_fare,
                   round(avg(distance), 3) AS mean_distance
            FROM trips GROUP BY zone ORDER BY zone
        """)

    def draw_audit_sample(self, size):
        frame = self.query(f"SELECT * FROM trips USING SAMPLE {size} ROWS")  # cause
        return frame.sort_values("trip_id").reset_index(drop=True)

    def close(self):
        self.con.close()


def design_matrix(frame):
    night = ((frame["hour"] >= 22) | (frame["hour"] < 5)).astype(float)
    columns = [np.ones(len(frame)), frame["distance"], frame["duration"], night]
    names = ["base", "per_km", "per_minute", "night"]
    for zone in BOROUGHS[1:]:
        columns.append((frame["zone"] == zone).astype(float))
        names.append(f"zone_{zone}")
    return np.column_stack(columns), names


def fit_fares(frame):
    X, names = design_matrix(frame)
    y = frame["fare"].to_numpy()
    coef, *_ = np.linalg.lstsq(X, y, rcond=None)
    residual = y - X @ coef
    sigma = float(residual.std(ddof=X.shape[1]))
    return dict(zip(names, coef.round(5).tolist())), residual, sigma


def find_outliers(frame, residual, sigma, cfg):
    table = frame.assign(residual=residual.round(3), z=(residual / sigma).round(3))
    flagged = table[table["z"].abs() > cfg.outlier_sigma]
    return flagged.sort_values(["z", "trip_id"], ascending=[False, True])


def score_on_all(frame, coef):
    X, names = design_matrix(frame)
    predicted = X @ np.array([coef[name] for name in names])
    error = frame["fare"].to_numpy() - predicted
    return {"mae": round(float(np.abs(error).mean()), 5),
            "rmse": round(float(np.sqrt((error ** 2).mean())), 5)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=float, default=AuditConfig.seed)
    parser.add_argument("--audit-size", type=int, default=AuditConfig.audit_size)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    cfg = AuditConfig(seed=args.seed, audit_size=args.audit_size)
    out = Path(cfg.out_dir)
    out.mkdir(exist_ok=True)

    trips = make_trips(cfg)
    store = TripStore(cfg.database)
    store.load(trips)
    store.set_seed(cfg.seed)
    zones = store.zone_summary()
    sample = store.draw_audit_sample(cfg.audit_size)
    store.close()
    log.info("audit sample: %d trips, mean fare %.3f", len(sample), sample["fare"].mean())

    coef, residual, sigma = fit_fares(sample)
    outliers = find_outliers(sample, residual, sigma, cfg)
    overall = score_on_all(trips, coef)

    zones.to_csv(out / "zones.csv", index=False)
    sample.to_csv(out / "sample.csv", index=False)
    outliers.to_csv(out / "outliers.csv", index=False)
    summary = {"sample_size": len(sample), "sigma": round(sigma, 5), "coefficients": coef,
               "outliers": int(len(outliers)), "all_trips": overall}
    (out / "summary.json").write_text(json.dumps(summary, indent=2))

    print(zones.to_string(index=False))
    print("fare model")
    for name, value in coef.items():
        print(f"  {name:<14s} {value:9.4f}")
    print(f"sigma {sigma:.4f}, outliers {len(outliers)}")
    print(f"all trips: MAE {overall['mae']:.4f} RMSE {overall['rmse']:.4f}")


if __name__ == "__main__":
    main()
