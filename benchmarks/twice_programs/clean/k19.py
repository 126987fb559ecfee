"""Time-series forecasting benchmark with an SQLite experiment tracker.

Modelled on Nixtla/statsforecast experiments (m4-like panels, cross_validation with expanding windows, a
"model, time, smape, mase" table) and unit8co/darts backtests; joblib.Parallel(n_jobs=2, verbose=5) over series,
numba-compiled exponential smoothing, results inserted into experiments.db (run uuid, host, started_at, fit_seconds).
"""
import argparse
import json
import os
import socket
import sqlite3
import time
import uuid
from datetime import datetime

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numba import njit
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge

SEASON, H, N_WINDOWS = 12, 12, 2


@njit
def holt_winters(y, m, h, a, b, g):
    n = len(y)
    s, level, trend, sse = np.zeros(n + h), y[:m].mean(), (y[m:2 * m].mean() - y[:m].mean()) / m, 0.0
    for i in range(m):
        s[i] = y[i] - level
    for t in range(m, n):
        f = level + trend + s[t - m]
        e = y[t] - f
        sse += e * e
        last = level
        level = a * (y[t] - s[t - m]) + (1 - a) * (level + trend)
        trend = b * (level - last) + (1 - b) * trend
        s[t] = g * (y[t] - level) + (1 - g) * s[t - m]
    out = np.empty(h)
    for k in range(h):
        out[k] = level + (k + 1) * trend + s[n - m + k % m]
    return out, sse


def naive(y):
    return np.tile(y[-SEASON:], H // SEASON + 1)[:H]


def ets(y):
    best, fc = np.inf, None
    for a in (0.1, 0.3, 0.6):
        for b in (0.01, 0.1):
            for g in (0.05, 0.2, 0.5):
                f, sse = holt_winters(y, SEASON, H, a, b, g)
                if sse < best:
                    best, fc = sse, f
    return fc


def lagged(model):
    def fit_predict(y):
        scale = y.mean()
        z = y / scale
        X = np.lib.stride_tricks.sliding_window_view(z[:-1], SEASON)
        model.fit(X, z[SEASON:])
        hist = list(z)
        for _ in range(H):
            hist.append(float(model.predict(np.array(hist[-SEASON:])[None])[0]))
        return np.array(hist[-H:]) * scale
    return fit_predict


MODELS = {'SeasonalNaive': naive, 'HoltWinters': ets, 'RidgeAR': lagged(Ridge(1.0)), 'RandomForestAR': lagged(RandomForestRegressor(25, min_samples_leaf=2, random_state=0, n_jobs=1))}


def make_panel(n_series=24, n=120):
    rng = np.random.default_rng(2023)
    frames = []
    for i in range(n_series):
        t = np.arange(n)
        y = 100 + rng.normal(0, 30) ** 2 / 20 + rng.normal(.3, .2) * t + rng.uniform(5, 20) * np.sin(2 * np.pi * (t + rng.integers(12)) / 12) + np.cumsum(rng.normal(0, 1.0, n)) + rng.normal(0, 3, n)
        frames.append(pd.DataFrame({'unique_id': f'M{i + 1}', 'ds': pd.date_range('2013-01-31', periods=n, freq='ME'), 'y': np.maximum(y, 5).round(3)}))
    return pd.concat(frames, ignore_index=True)


def smape(y, f):
    return 200 * np.mean(np.abs(y - f) / (np.abs(y) + np.abs(f)))


def evaluate_series(uid, y):
    rows = []
    for w in range(N_WINDOWS):
        cut = len(y) - H * (N_WINDOWS - w)
        train, test = y[:cut], y[cut:cut + H]
        scale = np.mean(np.abs(train[SEASON:] - train[:-SEASON]))
        for name, fn in MODELS.items():
            t0 = time.perf_counter()
            fc = fn(train)
            rows.append({'unique_id': uid, 'cutoff': cut, 'model': name, 'smape': smape(test, fc), 'mase': float(np.mean(np.abs(test - fc)) / scale),
                         'seconds': time.perf_counter() - t0, 'pid': os.getpid(), 'forecast': json.dumps([round(float(v), 6) for v in fc])})
    return rows


SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (run_id TEXT PRIMARY KEY, name TEXT, started_at TEXT, finished_at TEXT, host TEXT, pid INTEGER, status TEXT);
CREATE TABLE IF NOT EXISTS params (run_id TEXT, key TEXT, value TEXT);
CREATE TABLE IF NOT EXISTS metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT, model TEXT, key TEXT, value REAL, logged_at REAL);
"""


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--db', default='experiments.db')
    ap.add_argument('--jobs', type=int, default=2)
    args = ap.parse_args()
    con = sqlite3.connect(args.db)
    con.executescript(SCHEMA)
    run_id = str(uuid.uuid4())
    con.execute('INSERT INTO runs VALUES (?,?,?,?,?,?,?)', (run_id, 'monthly-backtest', datetime.now().isoformat(), None, socket.gethostname(), os.getpid(), 'RUNNING'))
    con.executemany('INSERT INTO params VALUES (?,?,?)', [(run_id, k, str(v)) for k, v in {'season': SEASON, 'horizon': H, 'windows': N_WINDOWS, 'models': ','.join(MODELS)}.items()])
    con.commit()
    print(f'[{datetime.now():%H:%M:%S}] run {run_id[:8]} started')
    panel = make_panel()
    panel.to_parquet('panel.parquet')
    t0 = time.time()
    holt_winters(panel.y.values[:48], SEASON, H, 0.1, 0.1, 0.1)
    print(f'numba compile: {time.time() - t0:.2f}s')
    t0 = time.time()
    parts = Parallel(n_jobs=args.jobs, verbose=5)(delayed(evaluate_series)(uid, g.y.to_numpy()) for uid, g in panel.groupby('unique_id', sort=False))
    wall = time.time() - t0
    cv = pd.DataFrame([r for p in parts for r in p])
    cv.drop(columns='pid').to_csv('cross_validation.csv', index=False)
    table = cv.groupby('model', sort=False).agg(smape=('smape', 'mean'), mase=('mase', 'mean'), time=('seconds', 'sum')).reset_index()
    print(table.to_string(index=False, float_format=lambda v: f'{v:.4f}'))
    wins = cv.loc[cv.groupby(['unique_id', 'cutoff']).mase.idxmin()].model.value_counts().sort_index()
    print('wins by MASE:', wins.to_dict())
    for r in table.itertuples():
        con.executemany('INSERT INTO metrics (run_id, model, key, value, logged_at) VALUES (?,?,?,?,?)',
                        [(run_id, r.model, k, float(getattr(r, k)), time.time()) for k in ('smape', 'mase', 'time')])
    con.execute("UPDATE runs SET finished_at=?, status='FINISHED' WHERE run_id=?", (datetime.now().isoformat(), run_id))
    con.commit()
    best = con.execute("SELECT model, value FROM metrics WHERE key='mase' AND run_id=? ORDER BY value LIMIT 1", (run_id,)).fetchone()
    con.close()
    json.dump({'run_id': run_id, 'best_model': best[0], 'mase': best[1], 'elapsed': wall, 'series_per_second': panel.unique_id.nunique() / wall, 'timestamp': datetime.now().isoformat()},
              open('summary.json', 'w'), indent=2)
    print(f'best: {best[0]} (MASE {best[1]:.4f}); backtest of {panel.unique_id.nunique()} series took {wall:.2f}s')


if __name__ == '__main__':
    main()
