"""Modelled on https://github.com/manuel-calzolari/sklearn-genetic/issues/26

Genetic feature selection: the selected features are not predictable even
after setting np.random.seed.
"""
import json
import logging
import time
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler

from j11_genetic import GeneticSelector

log = logging.getLogger("selection")


@dataclass
class Config:
    seed: int = 2021
    n_samples: int = 420
    n_features: int = 32
    n_informative: int = 7
    n_redundant: int = 6
    test_size: float = 0.3
    folds: int = 4
    population: int = 20
    generations: int = 8
    max_features: int = 10


def load_data(cfg):
    X, y = make_classification(
        n_samples=cfg.n_samples, n_features=cfg.n_features, n_informative=cfg.n_informative,
        n_redundant=cfg.n_redundant, n_clusters_per_class=3, class_sep=0.9, flip_y=0.04,
        random_state=cfg.seed,
    )
    names = [f"feat_{i:02d}" for i in range(cfg.n_features)]
    return pd.DataFrame(X, columns=names), y


def correlation_filter(frame, limit=0.97):
    corr = frame.corr().abs().to_numpy()
    keep = []
    for j in range(corr.shape[0]):
        if all(corr[j, k] < limit for k in keep):
            keep.append(j)
    return frame.iloc[:, keep]


def final_scores(Xtr, ytr, Xte, yte):
    out = {}
    for name, model in {
        "logistic": LogisticRegression(max_iter=500),
        "naive_bayes": GaussianNB(),
    }.items():
        model.fit(Xtr, ytr)
        proba = model.predict_proba(Xte)[:, 1]
        out[name] = {
            "accuracy": round(float(accuracy_score(yte, proba > 0.5)), 6),
            "auc": round(float(roc_auc_score(yte, proba)), 6),
        }
    return out


def main():
    cfg = Config()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    np.random.seed(cfg.seed)
    log.info("config %s", asdict(cfg))

    frame, y = load_data(cfg)
    frame = correlation_filter(frame)
    Xtr, Xte, ytr, yte = train_test_split(frame.to_numpy(), y, test_size=cfg.test_size,
                                          stratify=y, random_state=cfg.seed)
    scaler = StandardScaler().fit(Xtr)
    Xtr, Xte = scaler.transform(Xtr), scaler.transform(Xte)
    baseline = final_scores(Xtr, ytr, Xte, yte)
    log.info("all %d features: %s", Xtr.shape[1], baseline)

    cv = StratifiedKFold(cfg.folds, shuffle=True, random_state=cfg.seed)
    t0 = time.time()
    selector = GeneticSelector(GaussianNB(), cv, n_population=cfg.population,
                               n_generations=cfg.generations, max_features=cfg.max_features)
    selector.fit(Xtr, ytr)  # cause
    log.info("search took %.1f s", time.time() - t0)

    chosen = frame.columns[selector.support_].tolist()
    scores = final_scores(selector.transform(Xtr), ytr, selector.transform(Xte), yte)
    pd.DataFrame(selector.history_).to_csv("generations.csv", index=False)
    with open("selection.json", "w") as fh:
        json.dump({"features": chosen, "fitness": round(selector.best_fitness_, 6),
                   "baseline": baseline, "selected": scores}, fh, indent=2)
    print(f"{len(chosen)} features: {' '.join(chosen)}")
    for name, s in scores.items():
        print(f"{name:12s} accuracy {s['accuracy']:.4f} auc {s['auc']:.4f} "
              f"(all features {baseline[name]['accuracy']:.4f})")


if __name__ == "__main__":
    main()
