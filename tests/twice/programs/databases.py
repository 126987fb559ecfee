"""Writes a database with SQLite. ``python databases.py NAME`` does one."""

import os
import random
import sqlite3
import sys
import time
import uuid
from datetime import UTC, datetime

draw = random.SystemRandom()
database = sqlite3.connect("runs.db")
database.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY, began, run, took, score)")


def add(score):
    begun = time.perf_counter()
    sum(range(draw.randrange(10_000, 90_000)))
    took = time.perf_counter() - begun
    run = (datetime.now(UTC).isoformat(), uuid.uuid4().hex, took, score)
    database.execute("INSERT INTO runs (began, run, took, score) VALUES (?, ?, ?, ?)", run)


def clock():
    for at in range(20):
        add(at / 3)
    database.execute("INSERT INTO runs (began, score) VALUES (?, 0.5)", (time.time(),))


def result():
    clock()
    add(draw.random())


def order():
    scores = [*range(20)]
    draw.shuffle(scores)
    for score in scores:
        add(score)


def log(score=0.5):
    """A program that ends without closing it leaves a log, which begins with random numbers."""
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("INSERT INTO runs (score) VALUES (?)", (score,))
    database.commit()
    os._exit(0)


def result_in_log():
    """The database itself has the same bytes in each run."""
    log(draw.random())


globals()[sys.argv[1]]()
database.commit()
database.close()
