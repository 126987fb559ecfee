"""Music recommendations: train a factorisation model and score its ranking.

Makes listening data, trains with the WARP loss, evaluates precision and NDCG
on held-out plays and writes the recommendations and the item vectors.

Modelled on: https://github.com/lyst/lightfm/issues/286
"""
import csv
import json
import random
import time
from pathlib import Path

import numpy as np

from l08_pkg.data import make_interactions
from l08_pkg.evaluation import coverage, ndcg_at_k, precision_at_k, ranked_items
from l08_pkg.model import Factorizer

SEED = 42
N_USERS, N_ITEMS, EPOCHS, TOP = 450, 320, 14, 10


def experiment(train, test, hyperparameters, log):
    model = Factorizer(**hyperparameters)
    model.fit(train, epochs=EPOCHS, log=log)
    top = ranked_items(model.predict_matrix(), train, TOP)
    top_seen = ranked_items(model.predict_matrix(), train * 0, TOP)
    metrics = {
        "train_precision": round(precision_at_k(top_seen, train), 6),
        "test_precision": round(precision_at_k(top, test), 6),
        "test_ndcg": round(ndcg_at_k(top, test), 6),
        "coverage": round(coverage(top, train.shape[1]), 6),
    }
    return model, top, metrics


def write_recommendations(path, top):
    with open(path, "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["user", "rank", "item"])
        for u, items in enumerate(top.tolist()):
            for rank, item in enumerate(items, start=1):
                writer.writerow([u, rank, item])


def main():
    out = Path("recsys")
    out.mkdir(exist_ok=True)
    random.seed(SEED)
    rng = np.random.seed(SEED)  # cause

    train, test = make_interactions(N_USERS, N_ITEMS, np.random.default_rng(SEED))
    print(f"{train.nnz} plays to train on, {test.nnz} held out")

    hyperparameters = {
        "loss": "warp",
        "no_components": 12,
        "learning_rate": 0.04,
        "user_alpha": 1e-4,
        "item_alpha": 1e-4,
        "random_state": rng,  # cause
    }
    started = time.perf_counter()
    with open(out / "train.log", "w") as logfile:
        def log(text):
            logfile.write(f"{time.strftime('%H:%M:%S')} {text}\n")
        model, top, metrics = experiment(train, test, hyperparameters, log)
    print(f"trained in {time.perf_counter() - started:.1f}s")

    write_recommendations(out / "recommendations.csv", top)
    np.save(out / "item_embeddings.npy", model.item_embeddings)
    (out / "metrics.json").write_text(json.dumps(metrics, indent=2))
    for name, value in metrics.items():
        print(f"{name:>16}: {value:.4f}")


if __name__ == "__main__":
    main()
