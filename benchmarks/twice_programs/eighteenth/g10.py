"""Feature screening with shuffled copies: keep what beats its own noise.

Sensor readings are aggregated per machine, every feature gets a shuffled
shadow, and features whose correlation with the failure count exceeds the
strongest shadow are kept.

Modelled on: https://github.com/pola-rs/polars/issues/15464
"""
import json
import logging
import pathlib

import numpy as np
import polars as pl

SEED = 42
ROUNDS = 8
MACHINES = 12_000
SENSORS = 16

logging.basicConfig(
    filename="screening.log", format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO
)
log = logging.getLogger(__name__)


def make_readings(path, seed=17):
    """A week of readings per machine; a few sensors tell about failures."""
    rng = np.random.default_rng(seed)
    health = rng.normal(size=MACHINES)
    machine = np.repeat(np.arange(MACHINES), 8)
    columns = {"machine": machine, "hour": np.tile(np.arange(8), MACHINES)}
    for s in range(SENSORS):
        effect = 0.5 / (1 + s) if s < 6 else 0.0
        base = effect * health + rng.normal(size=MACHINES)
        columns[f"s{s:02d}"] = np.repeat(base, 8) + rng.normal(scale=0.7, size=len(machine))
    pl.DataFrame(columns).write_parquet(path)
    failures = rng.poisson(np.exp(0.3 + 0.5 * health))
    return pl.DataFrame({"machine": np.arange(MACHINES), "failures": failures})


def aggregate(path):
    """Mean, spread and trend of every sensor per machine."""
    sensors = [f"s{s:02d}" for s in range(SENSORS)]
    expressions = []
    for name in sensors:
        column = pl.col(name)
        expressions += [
            column.mean().alias(f"{name}_mean"),
            column.std().alias(f"{name}_std"),
            (column.tail(3).mean() - column.head(3).mean()).alias(f"{name}_trend"),
        ]
    return (
        pl.scan_parquet(path)
        .sort("machine", "hour")
        .group_by("machine", maintain_order=True)
        .agg(expressions)
        .collect()
        .sort("machine")
    )


def shadows(features):
    """A copy of the table in which every column is shuffled on its own."""
    return features.select(pl.all().shuffle().name.suffix("_shadow"))  # cause


def correlations(table, target):
    """Absolute rank correlation of every column with the target."""
    y = target.rank().to_numpy()
    y = (y - y.mean()) / y.std()
    out = {}
    for name in table.columns:
        x = table[name].rank().to_numpy()
        out[name] = float(abs(np.mean((x - x.mean()) / x.std() * y)))
    return out


class ShadowScreen:
    """Counts in how many rounds a feature is better than all shadows."""

    def __init__(self, rounds):
        self.rounds = rounds
        self.thresholds = []

    def fit(self, features, target):
        real = correlations(features, target)
        self.hits = dict.fromkeys(real, 0)
        self.mean_shadow = dict.fromkeys(real, 0.0)
        for number in range(self.rounds):
            noise = correlations(shadows(features), target)
            threshold = max(noise.values())
            self.thresholds.append(threshold)
            for name, value in real.items():
                self.hits[name] += value > threshold
                self.mean_shadow[name] += noise[f"{name}_shadow"] / self.rounds
            log.info("round %d: threshold %.5f", number, threshold)
        self.real = real
        return self

    def table(self):
        names = list(self.real)
        return pl.DataFrame(
            {
                "feature": names,
                "correlation": [round(self.real[n], 6) for n in names],
                "shadow": [round(self.mean_shadow[n], 6) for n in names],
                "hits": [self.hits[n] for n in names],
            }
        ).sort(["correlation", "feature"], descending=[True, False])


def main():
    pl.set_random_seed(SEED)
    path = pathlib.Path("readings.parquet")
    failures = make_readings(path)
    table = aggregate(path).join(failures, on="machine", how="inner", maintain_order="left")
    features = table.drop("machine", "failures")
    log.info("%d machines, %d features", table.height, features.width)
    screen = ShadowScreen(ROUNDS).fit(features, table["failures"])
    result = screen.table()
    result.write_csv("screening.csv")
    kept = result.filter(pl.col("hits") >= ROUNDS // 2 + 1)["feature"].to_list()
    summary = {
        "seed": SEED,
        "kept": kept,
        "thresholds": [round(t, 6) for t in screen.thresholds],
    }
    pathlib.Path("summary.json").write_text(json.dumps(summary, indent=1))
    print(f"{len(kept)} of {features.width} features kept: {', '.join(kept)}")
    print("thresholds:", " ".join(f"{t:.5f}" for t in screen.thresholds))


if __name__ == "__main__":
    main()
