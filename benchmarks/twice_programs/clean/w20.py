"""Rolling-origin forecasting competition on synthetic retail series.

Models x series are evaluated in a thread pool; forecasts go to HDF5 and Parquet, scores to CSV and
a SQLite run registry, the result objects to a pickle. Timings are kept next to the scores.
"""
import getpass
import json
import logging
import os
import pickle
import platform
import resource
import sqlite3
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from logging.handlers import QueueHandler, QueueListener
from pathlib import Path
from queue import Queue

import h5py
import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from threadpoolctl import threadpool_limits

SEED, N_SERIES, LENGTH, SEASON = 515, 12, 280, 7
HORIZON, N_ORIGINS, LAGS = 14, 3, 21
OUT = Path("competition")
log = logging.getLogger("fc")


@dataclass
class Result:
    series: str
    model: str
    forecasts: np.ndarray
    scores: dict
    fit_seconds: float
    predict_seconds: float
    thread: str
    finished: datetime = field(default_factory=lambda: datetime.now(timezone.utc))


def make_series():
    out = {}
    for i in range(N_SERIES):
        rng = np.random.default_rng([SEED, i])
        t = np.arange(LENGTH)
        level = 50 + 10 * i + np.cumsum(rng.normal(0.02, 0.35, LENGTH))
        season = rng.uniform(3, 12) * np.sin(2 * np.pi * (t + i) / SEASON) + rng.uniform(1, 5) * (t % SEASON == i % SEASON)
        y = level + season + rng.normal(0, 2, LENGTH)
        promo = rng.random(LENGTH) < 0.05
        out[f"store_{i // 4}/item_{i % 4}"] = np.maximum(y + promo * rng.uniform(5, 15, LENGTH), 0)
    return out


class SeasonalNaive:
    def fit(self, y):
        self.last = y[-SEASON:]
        return self

    def predict(self, h):
        return np.resize(self.last, h)


class HoltWinters:
    """Additive Holt-Winters, parameters by a small grid on the one-step error."""

    def _run(self, y, a, b, g):
        s = list(y[:SEASON] - y[:SEASON].mean())
        lvl, tr, sse = y[:SEASON].mean(), 0.0, 0.0
        for t in range(SEASON, len(y)):
            f = lvl + tr + s[t % SEASON]
            sse += (y[t] - f) ** 2
            new = a * (y[t] - s[t % SEASON]) + (1 - a) * (lvl + tr)
            tr = b * (new - lvl) + (1 - b) * tr
            s[t % SEASON] = g * (y[t] - new) + (1 - g) * s[t % SEASON]
            lvl = new
        return sse, lvl, tr, s, len(y)

    def fit(self, y):
        grid = [(a, b, g) for a in (0.1, 0.3, 0.6) for b in (0.0, 0.05) for g in (0.1, 0.3)]
        self.state = min((self._run(y, *p) for p in grid), key=lambda r: r[0])
        return self

    def predict(self, h):
        _, lvl, tr, s, n = self.state
        return np.array([lvl + (k + 1) * tr + s[(n + k) % SEASON] for k in range(h)])


class LagRegressor:
    def __init__(self, reg):
        self.reg = reg

    def _x(self, y, t):
        w = y[t - LAGS:t]
        return np.r_[w[::-1], w.mean(), w[-7:].mean(), np.sin(2 * np.pi * t / 7), np.cos(2 * np.pi * t / 7)]

    def fit(self, y):
        self.y = y
        X = np.array([self._x(y, t) for t in range(LAGS, len(y))])
        self.mu = y.mean()
        self.reg.fit(X - self.mu, y[LAGS:] - self.mu)
        return self

    def predict(self, h):
        y = list(self.y)
        for _ in range(h):
            x = self._x(np.array(y), len(y)) - self.mu
            y.append(float(self.reg.predict(x[None])[0] + self.mu))
        return np.array(y[-h:])


MODELS = {
    "snaive": SeasonalNaive,
    "holt_winters": HoltWinters,
    "ridge": lambda: LagRegressor(Ridge(2.0)),
    "knn": lambda: LagRegressor(KNeighborsRegressor(8, weights="distance")),
    "gbrt": lambda: LagRegressor(GradientBoostingRegressor(n_estimators=30, max_depth=3, subsample=0.8, random_state=SEED)),
}


def metrics(y, f, train):
    e = y - f
    scale = np.abs(train[SEASON:] - train[:-SEASON]).mean()
    return {"mae": float(np.abs(e).mean()), "rmse": float(np.sqrt((e ** 2).mean())), "mase": float(np.abs(e).mean() / scale),
            "smape": float(200 * (np.abs(e) / (np.abs(y) + np.abs(f))).mean())}


def evaluate(series, model, y):
    fits, preds, fc, sc = 0.0, 0.0, [], []
    for o in range(N_ORIGINS):
        cut = LENGTH - HORIZON * (N_ORIGINS - o)
        t0 = time.perf_counter()
        m = MODELS[model]().fit(y[:cut])
        t1 = time.perf_counter()
        f = m.predict(HORIZON)
        t2 = time.perf_counter()
        fits, preds = fits + t1 - t0, preds + t2 - t1
        fc.append(f)
        sc.append(metrics(y[cut:cut + HORIZON], f, y[:cut]))
    score = {k: float(np.mean([s[k] for s in sc])) for k in sc[0]}
    log.info("%-15s %-13s mase=%.4f fit=%.1fms predict=%.1fms", series, model, score["mase"], fits * 1e3, preds * 1e3)
    return Result(series, model, np.stack(fc), score, fits, preds, threading.current_thread().name)


def write_h5(results, run):
    with h5py.File(OUT / "forecasts.h5", "w", track_order=True) as f:
        f.attrs.update(run_id=run["id"], created=time.strftime("%a, %d %b %Y %H:%M:%S %z"), user=getpass.getuser())
        for r in results:
            d = f.create_dataset(f"{r.series}/{r.model}", data=r.forecasts, compression="gzip")
            d.attrs.update(r.scores)
            d.attrs["fit_seconds"] = r.fit_seconds


def write_registry(results, run, wall):
    con = sqlite3.connect(OUT / "registry.db")
    con.execute("CREATE TABLE IF NOT EXISTS runs(id TEXT PRIMARY KEY, started TEXT, wall REAL, host TEXT, pid INT, config TEXT)")
    con.execute("CREATE TABLE IF NOT EXISTS scores(run_id TEXT, series TEXT, model TEXT, mae REAL, rmse REAL, mase REAL, smape REAL, fit_s REAL)")
    con.execute("INSERT INTO runs VALUES (?,?,?,?,?,?)", (run["id"], run["started"].isoformat(), wall, platform.node(), os.getpid(),
                                                          json.dumps({"horizon": HORIZON, "origins": N_ORIGINS, "lags": LAGS})))
    con.executemany("INSERT INTO scores VALUES (?,?,?,?,?,?,?,?)",
                    [(run["id"], r.series, r.model, *(r.scores[k] for k in ("mae", "rmse", "mase", "smape")), r.fit_seconds) for r in results])
    con.commit()
    con.close()


def main():
    OUT.mkdir(exist_ok=True)
    run = {"id": str(uuid.uuid4()), "started": datetime.now()}
    q = Queue()
    sh, fh = logging.StreamHandler(sys.stdout), logging.FileHandler(OUT / f"run_{run['started']:%Y-%m-%dT%H%M%S}.log")
    for h in (sh, fh):
        h.setFormatter(logging.Formatter("%(asctime)s | %(threadName)-12s | %(message)s", "%H:%M:%S"))
    listener = QueueListener(q, sh, fh)
    log.addHandler(QueueHandler(q))
    log.setLevel(logging.INFO)
    listener.start()
    log.info("run %s: %d series x %d models", run["id"], N_SERIES, len(MODELS))

    data, results, t0 = make_series(), [], time.perf_counter()
    with threadpool_limits(1), ThreadPoolExecutor(2, thread_name_prefix="fc") as pool:
        futs = [pool.submit(evaluate, s, m, y) for s, y in data.items() for m in MODELS]
        for n, f in enumerate(as_completed(futs), 1):
            results.append(f.result())
            if n % 15 == 0:
                el = time.perf_counter() - t0
                log.info("progress %d/%d (%.1f it/s, ETA %.1fs)", n, len(futs), n / el, el / n * (len(futs) - n))
    wall = time.perf_counter() - t0
    order = {m: i for i, m in enumerate(MODELS)}
    results.sort(key=lambda r: (r.series, order[r.model]))
    listener.stop()

    scores = pd.DataFrame([{"series": r.series, "model": r.model, **r.scores, "fit_s": r.fit_seconds, "predict_s": r.predict_seconds,
                            "thread": r.thread} for r in results])
    scores.to_csv(OUT / "scores.csv", index=False)
    board = scores.groupby("model")[["mae", "rmse", "mase", "smape"]].mean().sort_values("mase")
    board.to_json(OUT / "leaderboard.json", orient="index", indent=2)
    best = scores.loc[scores.groupby("series").mase.idxmin(), ["series", "model", "mase"]]
    best.to_csv(OUT / "best_per_series.csv", index=False, float_format="%.10f")
    long = pd.concat([pd.DataFrame({"series": r.series, "model": r.model, "origin": np.repeat(np.arange(N_ORIGINS), HORIZON),
                                    "h": np.tile(np.arange(1, HORIZON + 1), N_ORIGINS), "yhat": r.forecasts.ravel()}) for r in results])
    long = long.reset_index(drop=True)
    long["created_at"] = pd.Timestamp.now()
    long["run_id"] = run["id"]
    long.to_parquet(OUT / "forecasts.parquet", index=False)
    write_h5(results, run)
    write_registry(results, run, wall)
    with open(OUT / "results.pkl", "wb") as f:
        pickle.dump({"run": run, "results": [asdict(r) for r in results], "wall": wall}, f)

    table = Table(title="Leaderboard")
    for c in ("model", "MAE", "RMSE", "MASE", "sMAPE", "wins", "fit time"):
        table.add_column(c, justify="left" if c == "model" else "right")
    wins, cost = best.model.value_counts(), scores.groupby("model").fit_s.sum()
    for m, r in board.iterrows():
        table.add_row(m, f"{r.mae:.4f}", f"{r.rmse:.4f}", f"{r.mase:.4f}", f"{r.smape:.3f}", str(wins.get(m, 0)), f"{cost[m] * 1e3:.1f} ms")
    Console(width=80).print(table)
    ru = resource.getrusage(resource.RUSAGE_SELF)
    print(f"wall {wall:.2f}s, user {ru.ru_utime:.2f}s, sys {ru.ru_stime:.2f}s, max rss {ru.ru_maxrss / 1024:.1f} MiB, "
          f"ctx switches {ru.ru_nvcsw}/{ru.ru_nivcsw}")
    print(f"winner: {board.index[0]} (MASE {board.mase.iloc[0]:.6f})")


if __name__ == "__main__":
    main()
