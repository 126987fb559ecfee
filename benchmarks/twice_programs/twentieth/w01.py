"""Train and compare logistic matrix factorization models on a listening log.

Fits the factor model for three ranks on the same play counts, reports
precision and MAP on held-out plays and writes the metrics, the best model's
factors and a file of recommendations.

Modelled on: https://github.com/benfred/implicit/issues/402
"""
import csv
import json
import logging
import os
import sys
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from w01_pkg.data import make_plays, split_plays
from w01_pkg.evaluate import rank_metrics, similar_items
from w01_pkg.lmf import LogisticMF

logging.basicConfig(level=logging.INFO, stream=sys.stdout,
                    format="%(asctime)s %(levelname)s %(message)s", datefmt="%H:%M:%S")
log = logging.getLogger("lmf")

SEED = 1
RANKS = (8, 16, 24)


def write_recommendations(path, model, train, users, n=8):
    with open(path, "w", newline="") as fh:
        out = csv.writer(fh)
        out.writerow(["user", "position", "item", "score"])
        for user in users:
            ids, scores = model.recommend(user, train, n)
            for pos, (item, score) in enumerate(zip(ids, scores), 1):
                out.writerow([user, pos, int(item), f"{score:.8f}"])


def main():
    plays = make_plays(n_users=360, n_items=260, seed=SEED)
    train, test = split_plays(plays, holdout=0.2, seed=SEED)
    log.info("plays: %d users, %d items, %d train pairs, %d test pairs",
             plays.n_users, plays.n_items, train.nnz, test.nnz)

    results, best = {}, None
    for rank in RANKS:
        start = time.perf_counter()
        model = LogisticMF(factors=rank, iterations=30, learning_rate=0.6,
                           regularization=0.4, neg_prop=12, num_threads=3,
                           random_state=SEED)
        model.fit(train)
        metrics = rank_metrics(model, train, test, k=10)
        results[rank] = metrics
        log.info("rank %2d  p@10 %.5f  map@10 %.5f  loglik %.6f  (%.2f s)", rank,
                 metrics["precision"], metrics["map"], metrics["loglik"],
                 time.perf_counter() - start)
        if best is None or metrics["map"] > results[best.factors]["map"]:
            best = model

    log.info("best rank: %d", best.factors)
    for item in (0, 7, 33):
        ids, scores = similar_items(best, item, n=4)
        log.info("items close to %d: %s", item,
                 ", ".join(f"{i} ({s:.3f})" for i, s in zip(ids, scores)))

    write_recommendations("recommendations.csv", best, train, range(0, 60, 4))
    np.savez("factors.npz", users=best.user_factors, items=best.item_factors)
    with open("metrics.json", "w") as fh:
        json.dump({str(k): v for k, v in results.items()}, fh, indent=2)
    log.info("written: metrics.json, factors.npz, recommendations.csv")


if __name__ == "__main__":
    main()
