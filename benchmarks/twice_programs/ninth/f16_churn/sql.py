"""Runs sql files one after the other."""
import argparse
import sqlite3
import time
from pathlib import Path


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--db", required=True)
    ap.add_argument("files", nargs="+", type=Path)
    args = ap.parse_args()
    for f in args.files:
        t0 = time.time()
        with sqlite3.connect(args.db) as db:
            db.executescript(f.read_text())
        print(f"{f.name}: {time.time() - t0:.2f}s")


if __name__ == "__main__":
    main()
