"""semview: a tiny semantic layer over DuckDB with nested "views" of a flights table.

Views declare group-by fields, aggregates and a limit; they are compiled to SQL, run,
and drilled into.  The results of a dashboard
are written to ``dashboard.json`` and ``drills.csv``.

Modelled on: https://github.com/malloydata/malloy/issues/3045
"""
import csv
import json
import logging
import time
from dataclasses import dataclass, field

import duckdb

log = logging.getLogger("semview")

MEASURES = {
    "flight_count": "count(*)",
    "delayed": "sum(case when delay > 30 then 1 else 0 end)",
    "total_distance": "sum(distance)",
    "longest": "max(distance)",
}

DIMENSIONS = {
    "carrier": "carrier",
    "origin": "origin",
    "destination": "destination",
    "dep_month": "month",
    "route": "origin || '-' || destination",
}


@dataclass
class View:
    name: str
    group_by: list
    aggregate: list
    limit: int
    where: list = field(default_factory=list)
    order_by: str = ""

    def refined(self, **filters):
        extra = [f"{DIMENSIONS[k]} = '{v}'" for k, v in filters.items()]
        return View(self.name, self.group_by, self.aggregate, self.limit,
                    self.where + extra, self.order_by)


class Compiler:
    def __init__(self, table):
        self.table = table

    def compile(self, view):
        columns = [f"{DIMENSIONS[d]} AS {d}" for d in view.group_by]
        columns += [f"{MEASURES[m]} AS {m}" for m in view.aggregate]
        sql = f"SELECT {', '.join(columns)} FROM {self.table}"
        if view.where:
            sql += " WHERE " + " AND ".join(view.where)
        sql += " GROUP BY " + ", ".join(str(i + 1) for i in range(len(view.group_by)))
        order = view.order_by or str(len(view.group_by) + 1)
        sql += f" ORDER BY {order} DESC NULLS LAST LIMIT {view.limit}"  # cause
        return sql


class Session:
    def __init__(self, connection, compiler):
        self.connection = connection
        self.compiler = compiler

    def run(self, view):
        sql = self.compiler.compile(view)
        started = time.perf_counter()
        frame = self.connection.execute(sql).df()  # cause
        rows = frame.to_dict("records")
        log.info("%s: %d rows in %.3fs", view.name, len(rows), time.perf_counter() - started)
        return rows


def load_flights(connection, rows):
    connection.execute("SET threads = 8")
    connection.execute(f"""
        CREATE TABLE flights AS
        SELECT i AS id,
               'C' || lpad((hash(i) % 40)::VARCHAR, 2, '0') AS carrier,
               'A' || lpad((hash(i * 7 + 1) % 150)::VARCHAR, 3, '0') AS origin,
               'A' || lpad((hash(i * 13 + 5) % 150)::VARCHAR, 3, '0') AS destination,
               (hash(i * 3 + 2) % 12)::INTEGER + 1 AS month,
               (hash(i * 17) % 90)::INTEGER - 20 AS delay,
               (hash(i * 19) % 2300)::INTEGER + 100 AS distance
        FROM range({rows}) t(i)
    """)
    return connection.execute("SELECT count(*), sum(distance) FROM flights").fetchone()


def dashboard_views():
    return [
        View("by_carrier", ["carrier"], ["flight_count", "delayed"], 40, order_by="1"),
        View("busy_routes", ["route"], ["flight_count"], 25),
        View("carrier_routes", ["carrier", "route"], ["flight_count"], 12),
        View("longest_by_pair", ["carrier", "origin"], ["longest"], 15),
    ]


def drill(session, top_rows):
    """Look closer at the routes which the dashboard shows first."""
    base = View("over_time", ["dep_month"], ["flight_count", "delayed"], 1)
    result = []
    for row in top_rows:
        view = base.refined(carrier=row["carrier"], route=row["route"])
        for hit in session.run(view):
            result.append((row["carrier"], row["route"], hit["dep_month"],
                           hit["flight_count"], int(hit["delayed"])))
    return result


def save(board, drills):
    with open("dashboard.json", "w") as fh:
        json.dump(board, fh, indent=1, default=int)
    with open("drills.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["carrier", "route", "dep_month", "flight_count", "delayed"])
        writer.writerows(drills)


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    connection = duckdb.connect()
    count, distance = load_flights(connection, 1_500_000)
    print(f"loaded {count} flights, {distance} miles")
    session = Session(connection, Compiler("flights"))
    board = {view.name: session.run(view) for view in dashboard_views()}
    drills = drill(session, board["carrier_routes"])
    save(board, drills)
    for name, rows in board.items():
        first = ", ".join(f"{k}={v}" for k, v in rows[0].items())
        print(f"{name}: {first}")
    for row in drills:
        print("drill", *row)


if __name__ == "__main__":
    main()
