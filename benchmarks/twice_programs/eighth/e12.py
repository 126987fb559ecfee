"""https://github.com/opensafely-core/cohort-extractor/pull/315 : ROW_NUMBER() OVER (PARTITION BY .. ORDER BY ..) without a unique
ordering picks any of the tied rows; fixed by adding the id as a tie-breaker."""
import json
import multiprocessing as mp
import os
import sqlite3
import time

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

DB = "cohort.sqlite"
SCHEMA = """
CREATE TABLE patient (patient_id INTEGER PRIMARY KEY, age INTEGER, sex INTEGER, outcome INTEGER);
CREATE TABLE coded_event (event_uid TEXT, patient_id INTEGER, event_date TEXT, code TEXT, value REAL);
CREATE INDEX ix_event ON coded_event (patient_id);
"""

LATEST = (
    "SELECT patient_id, value FROM ("
    " SELECT patient_id, value,"
    " ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY event_date DESC) AS rownum"  # cause
    " FROM coded_event WHERE code = ?"
    ") WHERE rownum = 1 ORDER BY patient_id"
)


def connect():
    con = sqlite3.connect(DB, timeout=30, isolation_level=None)
    con.execute("PRAGMA synchronous=OFF")
    return con


def create(n_patients):
    con = connect()
    con.executescript(SCHEMA)
    rs = np.random.RandomState(0)
    age = rs.randint(18, 90, n_patients)
    sex = rs.randint(0, 2, n_patients)
    risk = 0.04 * (age - 50) + 0.6 * sex + rs.randn(n_patients)
    con.execute("BEGIN")
    con.executemany("INSERT INTO patient VALUES (?,?,?,?)",
                    [(i, int(age[i]), int(sex[i]), int(risk[i] > 0.5)) for i in range(n_patients)])
    con.execute("COMMIT")
    con.close()


def load_practice(practice, n_patients, events):
    """One practice system delivers its events."""
    rs = np.random.RandomState(10 + practice)
    con = connect()
    for block in range(events // 25):
        rows = []
        for k in range(25):
            p = int(rs.randint(n_patients))
            day = "2020-%02d-%02d" % (rs.randint(1, 4), 1 + 7 * rs.randint(4))
            code = ["bmi", "sbp", "hba1c"][rs.randint(3)]
            rows.append((f"{practice}-{block}-{k}", p, day, code, float(np.round(rs.normal(28 + 0.02 * p, 6), 2))))
        con.execute("BEGIN IMMEDIATE")
        con.executemany("INSERT INTO coded_event VALUES (?,?,?,?,?)", rows)
        con.execute("COMMIT")
    con.close()


def import_all(n_patients):
    ctx = mp.get_context("fork")
    jobs = [ctx.Process(target=load_practice, args=(k, n_patients, 4000)) for k in range(2)]
    for j in jobs:
        j.start()
    for j in jobs:
        j.join()


def extract():
    con = connect()
    base = pd.read_sql("SELECT * FROM patient ORDER BY patient_id", con).set_index("patient_id")
    for code in ("bmi", "sbp", "hba1c"):
        col = pd.read_sql(LATEST, con, params=(code,)).set_index("patient_id")["value"]  # cause
        base[code] = col.reindex(base.index)
    con.close()
    return base.fillna(base.mean())


def analyse(cohort):
    rs = np.random.RandomState(3)
    x = cohort.drop(columns="outcome").to_numpy(float)
    x = (x - x.mean(0)) / x.std(0)
    y = cohort["outcome"].to_numpy()
    test = rs.rand(len(y)) < 0.3
    clf = LogisticRegression(C=0.5).fit(x[~test], y[~test])
    return {
        "auc": float(roc_auc_score(y[test], clf.predict_proba(x[test])[:, 1])),
        "coef": dict(zip(cohort.columns.drop("outcome"), map(float, clf.coef_[0]))),
        "means": {k: float(v) for k, v in cohort.mean().items()},
    }


def main():
    t = time.time()
    create(400)
    import_all(400)
    print("imported by pid", os.getpid(), "in %.2f s" % (time.time() - t))
    cohort = extract()
    result = analyse(cohort)
    print("patients", len(cohort), "auc %.5f" % result["auc"])
    cohort.to_csv("cohort.csv")
    with open("analysis.json", "w") as f:
        json.dump(result, f, indent=1)
    print("finished", time.strftime("%X"))


if __name__ == "__main__":
    main()
