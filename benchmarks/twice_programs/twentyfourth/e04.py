"""Audit sample of a vaccination register kept in SQLite.

Fills a register with synthetic practices and patients, draws an audit sample
of each region in the database, compares recorded and expected uptake in the
sample and writes the sample and a table of estimates with confidence limits.

Modelled on: https://github.com/r-dbi/RSQLite/issues/466
"""
import csv
import json
import logging
import math
import random
import sqlite3

log = logging.getLogger("audit")

SEED = 100
REGIONS = ["North", "East", "South", "West", "Centre"]
SAMPLE_PER_REGION = 60

SCHEMA = """
CREATE TABLE practice (id INTEGER PRIMARY KEY, region TEXT, size INTEGER);
CREATE TABLE patient (id INTEGER PRIMARY KEY, practice_id INTEGER, age INTEGER,
                      vaccinated INTEGER, recorded INTEGER,
                      FOREIGN KEY (practice_id) REFERENCES practice (id));
CREATE INDEX patient_practice ON patient (practice_id);
"""


def fill_register(conn, seed=SEED):
    """Create practices and patients; a part of the doses is not recorded."""
    rnd = random.Random(seed)
    conn.executescript(SCHEMA)
    patient_id = 0
    for practice_id in range(1, 601):
        region = REGIONS[practice_id % len(REGIONS)]
        size = rnd.randint(120, 320)
        conn.execute("INSERT INTO practice VALUES (?, ?, ?)", (practice_id, region, size))
        uptake = rnd.betavariate(8, 3)
        rows = []
        for _ in range(size):
            patient_id += 1
            age = int(rnd.triangular(0, 95, 40))
            vaccinated = int(rnd.random() < uptake * (0.7 + age / 300))
            recorded = int(vaccinated and rnd.random() < 0.93)
            rows.append((patient_id, practice_id, age, vaccinated, recorded))
        conn.executemany("INSERT INTO patient VALUES (?, ?, ?, ?, ?)", rows)
    conn.commit()
    log.info("register has %d patients", patient_id)
    return patient_id


class AuditSampler:
    """Draws patients for the audit, region by region."""

    def __init__(self, conn, per_region, seed):
        self.conn = conn
        self.per_region = per_region
        self.seed = seed

    def draw(self, region):
        random.seed(self.seed)
        query = """
            SELECT p.id, p.practice_id, p.age, p.vaccinated, p.recorded
            FROM patient AS p JOIN practice AS q ON q.id = p.practice_id
            WHERE q.region = ? ORDER BY RANDOM() LIMIT ?"""  # cause
        rows = self.conn.execute(query, (region, self.per_region)).fetchall()  # cause
        return [dict(zip(("id", "practice_id", "age", "vaccinated", "recorded"), row)) for row in rows]

    def draw_all(self):
        sample = []
        for region in REGIONS:
            for row in self.draw(region):
                row["region"] = region
                sample.append(row)
        log.info("drew %d patients", len(sample))
        return sample


def wilson(successes, n, z=1.96):
    """Wilson score interval of a proportion."""
    if n == 0:
        return 0.0, 1.0
    p = successes / n
    denom = 1 + z * z / n
    centre = (p + z * z / (2 * n)) / denom
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / denom
    return centre - half, centre + half


def estimate(sample):
    """Uptake and completeness of the records in each region."""
    table = []
    for region in REGIONS:
        part = [row for row in sample if row["region"] == region]
        vaccinated = sum(row["vaccinated"] for row in part)
        recorded = sum(row["recorded"] for row in part)
        low, high = wilson(vaccinated, len(part))
        table.append({
            "region": region,
            "n": len(part),
            "uptake": round(vaccinated / len(part), 4),
            "low": round(low, 4),
            "high": round(high, 4),
            "completeness": round(recorded / max(1, vaccinated), 4),
            "mean_age": round(sum(row["age"] for row in part) / len(part), 2),
        })
    return table


def population_totals(conn):
    query = """SELECT q.region, COUNT(*), SUM(p.vaccinated) FROM patient AS p
               JOIN practice AS q ON q.id = p.practice_id GROUP BY q.region ORDER BY q.region"""
    return {region: {"patients": n, "vaccinated": v} for region, n, v in conn.execute(query)}


def write_sample(path, sample):
    with open(path, "w", newline="") as handle:
        writer = csv.DictWriter(handle, fieldnames=["region", "id", "practice_id", "age", "vaccinated", "recorded"])
        writer.writeheader()
        for row in sorted(sample, key=lambda r: (r["region"], r["id"])):
            writer.writerow(row)


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    conn = sqlite3.connect("register.db")
    try:
        fill_register(conn)
        sampler = AuditSampler(conn, SAMPLE_PER_REGION, SEED)
        sample = sampler.draw_all()
        table = estimate(sample)
        totals = population_totals(conn)
    finally:
        conn.close()
    write_sample("audit_sample.csv", sample)
    with open("estimates.json", "w") as handle:
        json.dump({"seed": SEED, "estimates": table, "register": totals}, handle, indent=1)
    print("region    n  uptake  [95% limits]      completeness")
    for row in table:
        print("%-8s %3d  %.4f  [%.4f, %.4f]  %.4f" % (row["region"], row["n"], row["uptake"],
                                                     row["low"], row["high"], row["completeness"]))
    covered = sum(row["low"] <= totals[row["region"]]["vaccinated"] / totals[row["region"]]["patients"] <= row["high"]
                  for row in table)
    print("regions whose limits hold the register value:", covered, "of", len(table))


if __name__ == "__main__":
    main()
