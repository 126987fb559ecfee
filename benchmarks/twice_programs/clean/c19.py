"""Experiments in SQLite: runs by uuid with started and duration, metrics by the database's own clock, a view, a backup, a text export."""

import contextlib
import json
import os
import socket
import sqlite3
import time
import uuid
from datetime import datetime, timezone

import numpy as np

SCHEMA = """
CREATE TABLE experiment (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, created TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE run (run_uuid TEXT PRIMARY KEY, experiment_id INTEGER REFERENCES experiment, host TEXT, pid INTEGER, port INTEGER, status TEXT, started TEXT, ended REAL, duration REAL, params TEXT);
CREATE TABLE metric (run_uuid TEXT, key TEXT, step INTEGER, value REAL, at REAL DEFAULT (julianday('now')), seconds REAL, PRIMARY KEY (run_uuid, key, step));
CREATE VIEW last AS SELECT run_uuid, key, value FROM metric m WHERE step = (SELECT max(step) FROM metric WHERE run_uuid = m.run_uuid);
CREATE INDEX by_key ON metric (key, step);
"""


class Store:
    def __init__(self, path):
        self.db = sqlite3.connect(path)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.executescript(SCHEMA)

    @contextlib.contextmanager
    def run(self, experiment, **params):
        with self.db:
            self.db.execute("INSERT OR IGNORE INTO experiment (name) VALUES (?)", (experiment,))
        (number,) = self.db.execute("SELECT id FROM experiment WHERE name = ?", (experiment,)).fetchone()
        run, start = str(uuid.uuid4()), time.time()
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        with self.db:
            self.db.execute(
                "INSERT INTO run (run_uuid, experiment_id, host, pid, port, status, started, params) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (run, number, socket.gethostname(), os.getpid(), port, "RUNNING", datetime.now(timezone.utc).isoformat(), json.dumps(params)),
            )
        try:
            yield run
        finally:
            end = time.time()
            with self.db:
                self.db.execute("UPDATE run SET status = 'FINISHED', ended = ?, duration = ? WHERE run_uuid = ?", (end, end - start, run))

    def log(self, run, step, seconds, **values):
        with self.db:
            self.db.executemany("INSERT INTO metric (run_uuid, key, step, value, seconds) VALUES (?, ?, ?, ?, ?)", [(run, k, step, v, seconds) for k, v in values.items()])


def regression(seed, rate, steps=12):
    g = np.random.default_rng(seed)
    x = g.normal(size=(80, 4))
    y = x @ np.array([1.0, -2.0, 0.5, 0.0]) + g.normal(0, 0.1, 80)
    w = np.zeros(4)
    for step in range(steps):
        t = time.perf_counter()
        e = x @ w - y
        w -= rate * x.T @ e / len(y)
        yield step, float((e**2).mean()), float(np.abs(w).sum()), time.perf_counter() - t


def main():
    store = Store("experiments.db")
    for rate in (0.05, 0.2):
        for seed in (1, 2):
            with store.run("ridge", rate=rate, seed=seed) as run:
                for step, loss, norm, seconds in regression(seed, rate):
                    store.log(run, step, seconds, loss=loss, norm=norm)
                print(f"run {run[:8]} rate={rate} seed={seed} loss={loss:.6f} norm={norm:.4f} {seconds * 1e6:.0f}us/step")
    rows = store.db.execute("SELECT r.params, l.key, l.value, r.duration FROM last l JOIN run r USING (run_uuid) ORDER BY r.params, l.key").fetchall()
    for params, key, value, duration in rows:
        print(f"{params:32s} {key:5s} {value:10.6f} {duration:.4f}")
    total, n, slow = store.db.execute("SELECT sum(seconds), count(*), max(seconds) FROM metric WHERE key = 'loss'").fetchone()
    print(f"{n} rows, {total:.4f}s in all, slowest {slow * 1e3:.3f}ms")
    with contextlib.closing(sqlite3.connect("backup.db")) as copy:
        store.db.backup(copy)
    with open("dump.sql", "w") as f:
        f.writelines(line + "\n" for line in store.db.iterdump())
    store.db.close()


if __name__ == "__main__":
    main()
