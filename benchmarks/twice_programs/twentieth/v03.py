"""Draws a study cohort from the person tables and fits a risk model on it.

Builds persons, visits and outcomes, creates the target cohort in the database,
takes a sample of it and trains a logistic regression.
Writes cohort_sample.csv, population.json and model.json.
Modelled on: https://github.com/OHDSI/PatientLevelPrediction/issues/219
"""
import json
import logging
import time

import duckdb
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("plp")

SEED = 2021
N_PERSONS = 520_000
SAMPLE_SIZE = 4_000
FIRST_ONLY = True

RAW_COHORTS = """
CREATE TABLE raw_cohorts AS
SELECT v.person_id, v.visit_date AS cohort_start_date, v.severity, v.n_drugs,
       p.year_of_birth, p.gender_concept_id,
       op.observation_period_start_date, op.observation_period_end_date
FROM visit v
JOIN person p ON p.person_id = v.person_id
JOIN observation_period op ON op.person_id = v.person_id
WHERE v.visit_date >= op.observation_period_start_date + INTERVAL {washout} DAY
  AND v.visit_date <= op.observation_period_end_date
"""

FIRST_COHORTS = """
CREATE TABLE cohorts AS
SELECT person_id, min(cohort_start_date) AS cohort_start_date,
       arg_min(severity, cohort_start_date) AS severity,
       arg_min(n_drugs, cohort_start_date) AS n_drugs,
       any_value(year_of_birth) AS year_of_birth,
       any_value(gender_concept_id) AS gender_concept_id,
       any_value(observation_period_start_date) AS observation_period_start_date
FROM raw_cohorts
GROUP BY person_id
"""

# spreads the sample over persons and calendar time
SAMPLE_ORDER = (
    "(CAST(person_id * month(cohort_start_date) AS BIGINT) % 123)"
    " * (CAST(year(cohort_start_date) * day(cohort_start_date) AS BIGINT) % 123)"
)


def make_tables(con):
    rng = np.random.default_rng(SEED)
    person_id = np.arange(1, N_PERSONS + 1)
    year = rng.integers(1925, 2003, N_PERSONS)
    gender = rng.choice([8507, 8532], N_PERSONS)
    start = np.datetime64("2010-01-01") + rng.integers(0, 2000, N_PERSONS)
    length = rng.integers(300, 3300, N_PERSONS)
    frail = rng.gamma(2.0, 0.5, N_PERSONS) + (2021 - year) / 80.0
    person = pd.DataFrame({"person_id": person_id, "year_of_birth": year, "gender_concept_id": gender})
    period = pd.DataFrame({"person_id": person_id, "observation_period_start_date": start,
                           "observation_period_end_date": start + length})
    owner = rng.integers(0, N_PERSONS, int(1.6 * N_PERSONS))
    offset = rng.integers(0, 3300, len(owner)) % length[owner]
    # a person has at most one visit a day
    visits = pd.DataFrame({
        "person_id": person_id[owner], "visit_date": start[owner] + offset,
        "severity": rng.gamma(2.0, 1.0, len(owner)).round(3) + frail[owner].round(3),
        "n_drugs": rng.poisson(2 + frail[owner]),
    }).drop_duplicates(["person_id", "visit_date"])
    risk = 1 / (1 + np.exp(-(-4.2 + 0.9 * frail + 0.25 * (gender == 8507) + rng.normal(0, 0.5, N_PERSONS))))
    has = rng.random(N_PERSONS) < risk
    outcome = pd.DataFrame({"person_id": person_id[has]})
    for name, frame in (("person", person), ("observation_period", period), ("visit", visits), ("outcome", outcome)):
        con.register("frame_", frame)
        con.execute(f"CREATE TABLE {name} AS SELECT * FROM frame_")
        con.unregister("frame_")
        log.info("table %-18s %7d rows", name, len(frame))


def create_cohorts(con, washout=180):
    con.execute(RAW_COHORTS.format(washout=washout))
    if FIRST_ONLY:
        con.execute(FIRST_COHORTS)
    else:
        con.execute("CREATE TABLE cohorts AS SELECT * FROM raw_cohorts")
    return con.execute("SELECT count(*) FROM cohorts").fetchone()[0]


def sample_cohort(con, sample_size):
    """The first `sample_size` rows of the cohort in sampling order."""
    numbered = f"SELECT *, row_number() OVER (ORDER BY {SAMPLE_ORDER}) AS rn FROM cohorts"  # cause
    con.execute(f"CREATE TABLE sampled AS SELECT * FROM ({numbered}) alldata WHERE rn <= {sample_size}")
    return con.execute("""
        SELECT s.person_id, s.cohort_start_date, s.severity, s.n_drugs,
               year(s.cohort_start_date) - s.year_of_birth AS age,
               s.gender_concept_id,
               date_diff('day', s.observation_period_start_date, s.cohort_start_date) AS prior_days,
               CAST(o.person_id IS NOT NULL AS INTEGER) AS outcome
        FROM sampled s LEFT JOIN outcome o ON o.person_id = s.person_id
        ORDER BY s.person_id, s.cohort_start_date
    """).df()


def features(frame):
    return np.column_stack([
        frame["age"] / 10.0, (frame["gender_concept_id"] == 8507).astype(float), frame["severity"],
        frame["n_drugs"], np.log1p(frame["prior_days"]),
    ]).astype(float)


def fit_model(frame):
    X, y = features(frame), frame["outcome"].to_numpy()
    test = (frame["person_id"].to_numpy() % 4) == 0
    scaler = StandardScaler().fit(X[~test])
    model = LogisticRegression(C=1.0, max_iter=500, random_state=SEED).fit(scaler.transform(X[~test]), y[~test])
    scores = model.predict_proba(scaler.transform(X[test]))[:, 1]
    return {
        "n_train": int((~test).sum()),
        "n_test": int(test.sum()),
        "coefficients": dict(zip(("age", "male", "severity", "n_drugs", "prior"), model.coef_[0].tolist())),
        "intercept": float(model.intercept_[0]),
        "auc": float(roc_auc_score(y[test], scores)),
        "mean_risk": float(scores.mean()),
    }


def main():
    started = time.time()
    con = duckdb.connect(config={"threads": 8})
    make_tables(con)
    size = create_cohorts(con)
    log.info("target cohort: %d entries", size)
    frame = sample_cohort(con, SAMPLE_SIZE)
    frame.to_csv("cohort_sample.csv", index=False)
    population = {
        "cohort": size,
        "sampled": len(frame),
        "outcomes": int(frame["outcome"].sum()),
        "mean_age": float(frame["age"].mean()),
        "male": float((frame["gender_concept_id"] == 8507).mean()),
        "mean_prior_days": float(frame["prior_days"].mean()),
    }
    with open("population.json", "w") as fh:
        json.dump(population, fh, indent=2)
    result = fit_model(frame)
    with open("model.json", "w") as fh:
        json.dump(result, fh, indent=2)
    print(json.dumps(population, indent=2))
    print(f"AUC {result['auc']:.8f}, mean predicted risk {result['mean_risk']:.8f}")
    log.info("finished in %.1f s", time.time() - started)


if __name__ == "__main__":
    main()
