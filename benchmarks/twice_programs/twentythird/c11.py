"""Probabilistic record linkage of a customer table with duplicates.

Follows the Fellegi-Sunter model: u probabilities are estimated from random
pairs of records, m probabilities by expectation maximisation over blocked
pairs, and the pairs above a threshold are clustered by connected components.
All pair generation is done in DuckDB.

Modelled on: https://github.com/moj-analytical-services/splink/pull/3122
"""
import json
import logging
import random
from dataclasses import dataclass, field

import duckdb
import networkx as nx
import numpy as np
import pandas as pd

logger = logging.getLogger("linkage")

FIRST = "olivia amelia isla ava lily mia freya grace noah oliver george arthur muhammad leo harry oscar".split()
LAST = "smith jones taylor brown williams wilson johnson davies patel robinson wright thompson evans walker".split()
CITY = "london leeds bristol cardiff belfast glasgow york bath derby hull".split()
MAX_PAIRS = 60_000


def typo(rng, text):
    i = rng.randrange(len(text))
    return text[:i] + rng.choice("abcdefghijklmnopqrstuvwxyz") + text[i + 1:]


def make_people(n, seed):
    """People with one to four records each, with typos and moves."""
    rng = random.Random(seed)
    rows = []
    for cluster in range(n):
        person = {
            "first_name": rng.choice(FIRST),
            "surname": rng.choice(LAST),
            "dob": f"{rng.randint(1940, 2004)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}",
            "city": rng.choice(CITY),
        }
        for _ in range(rng.choices([1, 2, 3, 4], [5, 3, 2, 1])[0]):
            record = dict(person)
            for name in ("first_name", "surname"):
                if rng.random() < 0.15:
                    record[name] = typo(rng, record[name])
            if rng.random() < 0.2:
                record["city"] = rng.choice(CITY)
            if rng.random() < 0.06:
                record["dob"] = record["dob"][:8] + f"{rng.randint(1, 28):02d}"
            rows.append({"unique_id": len(rows), "cluster": cluster, **record})
    return pd.DataFrame(rows)


@dataclass
class Comparison:
    """Levels of agreement of a column, from exact to anything else."""

    column: str
    levels: list
    m: np.ndarray = field(default=None)
    u: np.ndarray = field(default=None)

    def case_expression(self):
        cases = " ".join(f"WHEN {sql.format(l='l.' + self.column, r='r.' + self.column)} THEN {i}"
                         for i, sql in enumerate(self.levels))
        return f"CASE {cases} ELSE {len(self.levels)} END AS gamma_{self.column}"

    @property
    def size(self):
        return len(self.levels) + 1


def default_comparisons():
    near = ["{l} = {r}", "jaro_winkler_similarity({l}, {r}) > 0.9", "jaro_winkler_similarity({l}, {r}) > 0.75"]
    return [
        Comparison("first_name", near),
        Comparison("surname", near),
        Comparison("dob", ["{l} = {r}", "levenshtein({l}, {r}) <= 2"]),
        Comparison("city", ["{l} = {r}"]),
    ]


class Linker:
    def __init__(self, people, comparisons):
        self.con = duckdb.connect()
        self.con.execute("SET threads TO 1")
        self.con.register("people_df", people)
        self.con.execute("CREATE TABLE people AS SELECT * FROM people_df ORDER BY unique_id")
        self.n = len(people)
        self.comparisons = comparisons

    def gammas(self, left, right, condition):
        columns = ", ".join(c.case_expression() for c in self.comparisons)
        return self.con.execute(
            f"SELECT l.unique_id AS id_l, r.unique_id AS id_r, {columns} FROM {left} l JOIN {right} r "
            f"ON l.unique_id < r.unique_id AND ({condition}) ORDER BY 1, 2").fetchdf()

    def estimate_u(self, max_pairs=MAX_PAIRS):
        """Agreement among random pairs, which are nearly all non-matches."""
        size = int((2 * max_pairs) ** 0.5)
        query = f"CREATE OR REPLACE TABLE sampled AS SELECT * FROM people USING SAMPLE {size} ROWS"  # cause
        self.con.execute(query)  # cause
        pairs = self.gammas("sampled", "sampled", "true")
        for c in self.comparisons:
            counts = np.bincount(pairs[f"gamma_{c.column}"], minlength=c.size) + 0.5
            c.u = counts / counts.sum()
        logger.info("u estimated from %d pairs", len(pairs))

    def match_weights(self, pairs, prior):
        logit = np.full(len(pairs), np.log(prior / (1 - prior)))
        for c in self.comparisons:
            logit += np.log(c.m / c.u)[pairs[f"gamma_{c.column}"].to_numpy()]
        return logit

    def deterministic_prior(self, pairs, recall=0.5):
        """Share of true matches, from the pairs that agree exactly on all names and the date."""
        exact = (pairs[["gamma_first_name", "gamma_surname", "gamma_dob"]] == 0).all(axis=1)
        return float(exact.mean() / recall)

    def expectation_maximisation(self, pairs, iterations=25):
        prior = self.deterministic_prior(pairs)
        for c in self.comparisons:
            c.m = np.array([0.8] + [0.2 / (c.size - 1)] * (c.size - 1))
        for _ in range(iterations):
            p = 1 / (1 + np.exp(-self.match_weights(pairs, prior)))
            for c in self.comparisons:
                counts = np.bincount(pairs[f"gamma_{c.column}"], weights=p, minlength=c.size) + 1e-3
                c.m = counts / counts.sum()
        return prior


def cluster(n, pairs, probability, threshold):
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    chosen = pairs[probability >= threshold]
    graph.add_edges_from(zip(chosen["id_l"], chosen["id_r"]))
    return sorted(sorted(component) for component in nx.connected_components(graph))


def evaluate(pairs, probability, people, threshold):
    truth = people["cluster"].to_numpy()
    same = truth[pairs["id_l"]] == truth[pairs["id_r"]]
    predicted = probability >= threshold
    return float(same[predicted].mean()), float(predicted[same].mean())


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    people = make_people(2600, seed=3122)
    linker = Linker(people, default_comparisons())
    linker.estimate_u()
    pairs = linker.gammas("people", "people", "l.dob = r.dob OR (l.surname = r.surname AND substr(l.dob, 1, 7) = substr(r.dob, 1, 7))")
    prior = linker.expectation_maximisation(pairs)
    weight = linker.match_weights(pairs, prior)
    probability = 1 / (1 + np.exp(-weight))
    clusters = cluster(len(people), pairs, probability, threshold=0.9)
    precision, recall = evaluate(pairs, probability, people, threshold=0.9)
    pairs.assign(match_weight=np.round(weight / np.log(2), 6)).to_csv("predictions.csv", index=False)
    with open("model.json", "w") as f:
        json.dump({c.column: {"m": c.m.tolist(), "u": c.u.tolist()} for c in linker.comparisons}, f, indent=1)
    print(f"{len(people)} records, {len(pairs)} candidate pairs, prior {prior:.6f}")
    for c in linker.comparisons:
        print(f"{c.column:11s} m {np.round(c.m, 5).tolist()} u {np.round(c.u, 5).tolist()}")
    print(f"{len(clusters)} clusters, largest {max(map(len, clusters))}")
    print(f"precision {precision:.5f} recall {recall:.5f}")


if __name__ == "__main__":
    main()
