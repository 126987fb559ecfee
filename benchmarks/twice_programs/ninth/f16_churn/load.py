"""Fills the database with subscribers and their visits."""
import argparse
import datetime as dt
import sqlite3

import numpy as np


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--db", required=True)
    ap.add_argument("--subscribers", type=int, required=True)
    ap.add_argument("--seed", type=int, required=True)
    args = ap.parse_args()
    rng = np.random.default_rng(args.seed)
    start = dt.datetime(2025, 1, 1)
    habit = rng.gamma(2.0, 6.0, args.subscribers)
    joined = rng.integers(0, 200, args.subscribers)
    people, visits = [], []
    for i in range(args.subscribers):
        quits = rng.random() < 1 / (1 + np.exp(0.12 * habit[i] - 1.0))
        last = 360 if not quits else int(rng.integers(joined[i] + 20, 360))
        people.append((i, str(start + dt.timedelta(days=int(joined[i]))),
                       int(rng.integers(1, 4)), int(quits != (rng.random() < 0.08))))
        for _ in range(1 + int(rng.poisson(habit[i]))):
            at = start + dt.timedelta(seconds=int(rng.integers(joined[i] * 86400, last * 86400)))
            visits.append((i, str(at), int(rng.integers(10, 4000)),
                           str(rng.choice(["web", "app", "tv"]))))
    with sqlite3.connect(args.db) as db:
        db.execute("create table subscriber (id integer primary key, joined text, plan int, churned int)")
        db.execute("create table visit (subscriber int, at text, seconds int, device text)")
        db.executemany("insert into subscriber values (?,?,?,?)", people)
        db.executemany("insert into visit values (?,?,?,?)", visits)
    print(f"{len(people)} subscribers, {len(visits)} visits")


if __name__ == "__main__":
    main()
