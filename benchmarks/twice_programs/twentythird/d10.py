"""Daily ranking of a video site from an event table.

Loads view events into an analytical database, ranks the videos by the number
of complete views, gives a bonus to the creators of the ranked videos and
writes the ranking, the bonus list and a summary by category.

Modelled on: https://www.percona.com/blog/2017/04/07/non-deterministic-order-select-limit/
"""
import csv
import json
import logging
from collections import Counter, defaultdict

import duckdb
import numpy as np
import pandas as pd

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("ranking")

N_VIDEOS = 60_000
N_EVENTS = 3_000_000
CATEGORIES = ["cooking", "games", "howto", "music", "news", "travel"]
TOP = 40
BONUS = [100, 60, 40, 30, 25]


def make_videos(rng):
    return pd.DataFrame({
        "video_id": np.arange(N_VIDEOS),
        "creator_id": rng.integers(0, 9000, N_VIDEOS),
        "category": np.array(CATEGORIES)[rng.integers(0, len(CATEGORIES), N_VIDEOS)],
        "seconds": rng.integers(20, 1200, N_VIDEOS),
    })


def make_events(rng):
    weight = rng.gamma(6.0, 1.0, N_VIDEOS)
    return pd.DataFrame({
        "video_id": rng.choice(N_VIDEOS, size=N_EVENTS, p=weight / weight.sum()),
        "hour": rng.integers(0, 24, N_EVENTS).astype("int8"),
        "share": rng.random(N_EVENTS).round(3),
    })


class Warehouse:
    def __init__(self, threads=4):
        self.con = duckdb.connect()
        self.con.execute(f"SET threads = {threads}")

    def load(self, name, frame):
        self.con.register("incoming", frame)
        self.con.execute(f"CREATE TABLE {name} AS SELECT * FROM incoming")
        self.con.unregister("incoming")
        count = self.con.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0]
        log.info("%s: %d rows", name, count)

    def make_views(self):
        self.con.execute("""
            CREATE VIEW complete_views AS
            SELECT v.video_id, v.creator_id, v.category, count(*) AS complete
            FROM events e JOIN videos v ON e.video_id = v.video_id
            WHERE e.share > 0.9
            GROUP BY v.video_id, v.creator_id, v.category
        """)

    def top_videos(self, category, limit):
        args = [category, limit]
        return self.con.execute("SELECT * FROM complete_views WHERE category = ? ORDER BY complete DESC LIMIT ?", args).fetchall()  # cause

    def category_totals(self):
        sql = """
            SELECT v.category, count(*) AS views, sum(CASE WHEN e.share > 0.9 THEN 1 ELSE 0 END) AS complete
            FROM events e JOIN videos v ON e.video_id = v.video_id
            GROUP BY v.category ORDER BY v.category
        """
        return self.con.execute(sql).fetchall()

    def busiest_hours(self):
        sql = "SELECT hour, count(*) AS n FROM events GROUP BY hour ORDER BY n DESC, hour LIMIT 3"
        return self.con.execute(sql).fetchall()

    def close(self):
        self.con.close()


def rank(rows):
    return [{"rank": k, "video": r[0], "creator": r[1], "category": r[2], "complete": r[3]}
            for k, r in enumerate(rows, 1)]


def bonuses(rankings):
    """Amounts for creators: a table for the first places, one unit for others."""
    paid = defaultdict(int)
    for entries in rankings.values():
        for entry in entries:
            place = entry["rank"] - 1
            paid[entry["creator"]] += BONUS[place] if place < len(BONUS) else 5
    return dict(sorted(paid.items()))


def write_rankings(rankings):
    with open("ranking.csv", "w", newline="") as fh:
        out = csv.DictWriter(fh, ["rank", "video", "creator", "category", "complete"])
        out.writeheader()
        for category in CATEGORIES:
            out.writerows(rankings[category])


def main():
    rng = np.random.default_rng(2017)
    warehouse = Warehouse()
    warehouse.load("videos", make_videos(rng))
    warehouse.load("events", make_events(rng))
    warehouse.make_views()
    rankings = {c: rank(warehouse.top_videos(c, TOP)) for c in CATEGORIES}
    totals = warehouse.category_totals()
    hours = warehouse.busiest_hours()
    warehouse.close()
    paid = bonuses(rankings)
    write_rankings(rankings)
    with open("bonus.json", "w") as fh:
        json.dump({str(k): v for k, v in paid.items()}, fh, indent=1)
    print("busiest hours:", ", ".join(f"{h}h ({n})" for h, n in hours))
    for category, views, complete in totals:
        first = rankings[category][0]
        last = rankings[category][-1]
        print(f"{category:8s} views {views:7d} complete {complete:6d} "
              f"top {first['video']} ({first['complete']}) last {last['video']} ({last['complete']})")
    print("creators paid:", len(paid), "sum:", sum(paid.values()))
    spread = Counter(paid.values())
    print("payments:", ", ".join(f"{amount}x{n}" for amount, n in sorted(spread.items())[:6]))


if __name__ == "__main__":
    main()
