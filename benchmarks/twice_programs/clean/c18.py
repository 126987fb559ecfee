"""A study of estimators in pandas: results as CSV, gzip, JSON, Parquet, Feather, Excel-like HTML, LaTeX, pickle and a DuckDB database."""

import gzip
import json
import os
import platform
import time
import uuid
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd

ROOT = Path("results")


def simulate(n, kind, rng):
    x = rng.normal(size=n)
    if kind == "heavy":
        x = x / np.abs(rng.normal(size=n)) ** 0.5
    return x + 0.5


def mean(x):
    return float(np.mean(x))


def median(x):
    return float(np.median(x))


def huber(x, k=1.3):
    m = np.median(x)
    for _ in range(30):
        w = np.minimum(1, k / np.maximum(np.abs(x - m), 1e-12))
        m = float((w * x).sum() / w.sum())
    return m


def study():
    rows = []
    for kind in ("normal", "heavy"):
        for n in (50, 200, 800):
            rng = np.random.default_rng([n, len(kind)])
            samples = [simulate(n, kind, rng) for _ in range(40)]
            for f in (mean, median, huber):
                wall, cpu = time.perf_counter(), time.process_time()
                values = np.array([f(s) for s in samples])
                rows.append(
                    {
                        "kind": kind,
                        "n": n,
                        "estimator": f.__name__,
                        "bias": values.mean() - 0.5,
                        "rmse": np.sqrt(((values - 0.5) ** 2).mean()),
                        "wall_s": time.perf_counter() - wall,
                        "cpu_s": time.process_time() - cpu,
                        "finished": pd.Timestamp.now(),
                    }
                )
    return pd.DataFrame(rows)


def main():
    ROOT.mkdir()
    began = time.time()
    df = study()
    meta = {"run": uuid.uuid4().hex, "host": platform.node(), "python": platform.python_version(), "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "pid": os.getpid(), "seconds": time.time() - began}
    print(df.to_string(index=False, float_format="%.5f"))
    df.to_csv(ROOT / "study.csv", index=False)
    df.to_csv(ROOT / "study.csv.gz", index=False)
    df.to_json(ROOT / "study.json", orient="records", lines=True, date_format="iso")
    df.to_parquet(ROOT / "study.parquet")
    df.to_feather(ROOT / "study.feather")
    df.to_pickle(ROOT / "study.pkl")
    df.to_html(ROOT / "study.html", float_format="%.4f")
    (ROOT / "meta.json").write_text(json.dumps(meta, indent=2))
    wide = df.pivot_table(index=["kind", "n"], columns="estimator", values=["rmse", "wall_s"])
    print(wide.round(4).to_string())
    wide.to_csv(ROOT / "wide.csv")
    stats = df.groupby("estimator").agg(rmse=("rmse", "mean"), total=("wall_s", "sum"), slowest=("wall_s", "max"))
    print(stats)
    stats.to_csv(ROOT / "stats.tsv", sep="\t", float_format="%.6f")
    print(df.describe().T.to_string())
    with gzip.open(ROOT / "notes.txt.gz", "wt") as f:
        f.write(f"best {df.loc[df.rmse.idxmin(), 'estimator']} of {len(df)}\nrun {meta['run']} took {meta['seconds']:.2f}s\n")
    with duckdb.connect(str(ROOT / "study.duckdb")) as db:
        db.execute("CREATE TABLE study AS SELECT * FROM df")
        best = db.execute("SELECT kind, n, arg_min(estimator, rmse) AS best, min(rmse) AS rmse FROM study GROUP BY ALL ORDER BY ALL").df()
        db.execute(f"COPY (SELECT * EXCLUDE (finished, wall_s, cpu_s) FROM study ORDER BY ALL) TO '{ROOT}/clean.csv'")
    print(best.to_string(index=False))
    print(f"Done in {time.time() - began:.2f} s ({meta['run']})")


if __name__ == "__main__":
    main()
