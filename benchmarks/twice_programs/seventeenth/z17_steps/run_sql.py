"""Run SQL files against a DuckDB file, statement by statement."""
import argparse
import time
from pathlib import Path

import duckdb


def statements(text):
    body = "\n".join(line.split("--", 1)[0] for line in text.splitlines())
    return [s.strip() for s in body.split(";") if s.strip()]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--db", required=True)
    ap.add_argument("--var", action="append", default=[])
    ap.add_argument("--threads", type=int, default=4)
    ap.add_argument("files", nargs="+", type=Path)
    args = ap.parse_args()
    values = dict(v.split("=", 1) for v in args.var)

    con = duckdb.connect(args.db, config={"threads": args.threads})
    for path in args.files:
        text = path.read_text()
        for key, val in values.items():
            text = text.replace("${" + key + "}", val)
        began = time.perf_counter()
        todo = statements(text)
        for sql in todo:
            con.execute(sql)
        print(f"  {path.name}: {len(todo)} statements, {time.perf_counter() - began:.2f} s")
    con.close()


if __name__ == "__main__":
    main()
