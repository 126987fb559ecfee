"""Forensic query tool over a row-change archive in parquet files.

Change events (insert, update, delete) are kept in an in-memory table, and
the baseline of the table in parquet files with many row groups.  A query
merges the events of a time window with rows of the baseline snapshot, limits
the answer, and reports which accounts should be looked at first.

Modelled on: https://github.com/dbtrail/dbtrail/issues/839
"""
import json
import logging
import os
import time
from dataclasses import dataclass

import duckdb

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("trail")

ARCHIVE = "archive"
ROWS_PER_FILE = 250_000
N_FILES = 16
N_EVENTS = 30_000


@dataclass
class Filter:
    status: int = None
    min_balance: int = None
    since: int = 0
    until: int = 10**9
    include_snapshot: bool = True
    limit: int = 100

    def where(self):
        parts, values = [], []
        if self.status is not None:
            parts.append("status = ?")
            values.append(self.status)
        if self.min_balance is not None:
            parts.append("balance >= ?")
            values.append(self.min_balance)
        return (" WHERE " + " AND ".join(parts) if parts else ""), values


class Archive:
    """Writes the baseline as parquet and keeps the events."""

    def __init__(self, connection, folder):
        self.connection = connection
        self.folder = folder

    def create(self):
        os.makedirs(self.folder, exist_ok=True)
        for part in range(N_FILES):
            first = part * ROWS_PER_FILE
            self.connection.execute(
                f"""
                COPY (
                    SELECT i AS account,
                           CAST(hash(i * 7 + 1) % 100000 AS BIGINT) AS balance,
                           CAST(hash(i * 3 + 2) % 12 AS INTEGER) AS status,
                           'branch-' || (hash(i + 5) % 60) AS branch
                    FROM range({first}, {first + ROWS_PER_FILE}) t(i)
                ) TO '{self.folder}/part-{part:03d}.parquet'
                (FORMAT parquet, ROW_GROUP_SIZE 20000)
                """
            )
        self.connection.execute(
            f"""
            CREATE TABLE events AS
            SELECT i AS event_id,
                   CAST(i * 11 AS BIGINT) AS ts,
                   CAST(hash(i * 13) % {ROWS_PER_FILE * N_FILES} AS BIGINT) AS account,
                   CAST(hash(i * 17) % 3 AS INTEGER) AS kind,
                   CAST(hash(i * 19) % 5000 AS BIGINT) - 2500 AS delta
            FROM range({N_EVENTS}) t(i)
            """
        )

    @property
    def pattern(self):
        return f"{self.folder}/*.parquet"


class Engine:
    def __init__(self, connection, archive):
        self.connection = connection
        self.archive = archive

    def fetch_events(self, query):
        rows = self.connection.execute(
            "SELECT event_id, ts, account, kind, delta FROM events "
            "WHERE ts BETWEEN ? AND ? ORDER BY event_id LIMIT ?",
            [query.since, query.until, query.limit * 4],
        ).fetchall()
        return [dict(zip(("id", "ts", "account", "kind", "delta"), row)) for row in rows]

    def fetch_snapshot(self, query):
        where, values = query.where()
        sql = f"SELECT account, balance, status, branch FROM read_parquet('{self.archive.pattern}')" + where
        if query.limit:
            sql += f" LIMIT {query.limit}"  # cause
        rows = self.connection.execute(sql, values).fetchall()  # cause
        return [dict(zip(("account", "balance", "status", "branch"), row)) for row in rows]

    def merge(self, events, snapshot):
        known = {row["account"]: dict(row, changes=0, drift=0) for row in snapshot}
        for event in events:
            row = known.get(event["account"])
            if row is not None and event["kind"] != 2:
                row["changes"] += 1
                row["drift"] += event["delta"]
        return list(known.values())

    def run(self, query):
        events = self.fetch_events(query)
        snapshot = self.fetch_snapshot(query) if query.include_snapshot else []
        merged = self.merge(events, snapshot)
        merged.sort(key=lambda row: (-row["balance"] - row["drift"], row["account"]))
        return events, merged


def totals(connection, archive):
    return connection.execute(
        f"SELECT status, count(*), sum(balance) FROM read_parquet('{archive.pattern}') "
        "GROUP BY status ORDER BY status"
    ).fetchall()


def summary(rows):
    branches = {}
    for row in rows:
        count, amount = branches.get(row["branch"], (0, 0))
        branches[row["branch"]] = (count + 1, amount + row["balance"])
    return dict(sorted(branches.items()))


def connect():
    connection = duckdb.connect()
    connection.execute("SET threads TO 4")
    connection.execute("SET preserve_insertion_order = false")  # cause
    return connection


def main():
    start = time.time()
    connection = connect()
    archive = Archive(connection, ARCHIVE)
    archive.create()
    log.info("archive ready after %.1f s", time.time() - start)
    print("status      rows       balance")
    for status, rows, balance in totals(connection, archive):
        print(f"{status:6d} {rows:9d} {balance:13d}")
    engine = Engine(connection, archive)
    queries = {
        "frozen": Filter(status=7, limit=400),
        "large": Filter(min_balance=99_000, limit=250),
        "recent": Filter(since=100_000, until=200_000, limit=1000),
        "events-only": Filter(include_snapshot=False, limit=50),
    }
    report = {}
    for name, query in queries.items():
        events, rows = engine.run(query)
        head = [row["account"] for row in rows[:5]]
        amount = sum(row["balance"] + row["drift"] for row in rows)
        print(f"{name:12s} events={len(events)} rows={len(rows)} amount={amount} first={head}")
        report[name] = {"rows": len(rows), "amount": amount, "branches": summary(rows)}
        log.info("query %s answered", name)
    with open("report.json", "w") as handle:
        json.dump(report, handle, indent=1)
    for path in os.listdir(ARCHIVE):
        os.remove(os.path.join(ARCHIVE, path))
    os.rmdir(ARCHIVE)
    log.info("done in %.1f s", time.time() - start)


if __name__ == "__main__":
    main()
