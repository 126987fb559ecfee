"""pipesearch: evolve small scikit-learn pipelines for a tabular data set.

A population of pipeline descriptions (scaler, selector, classifier and their
settings) is evolved with tournament selection, crossover and mutation.  Each
candidate is compiled to a scikit-learn pipeline and scored by cross-validation.
The history goes to ``history.csv``, the winner to ``best_pipeline.json``.

Modelled on: https://github.com/EpistasisLab/tpot/issues/1291
"""
import csv
import json
import logging
import random
import warnings
from dataclasses import dataclass, field

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier

warnings.filterwarnings("ignore")
log = logging.getLogger("pipesearch")

SCALERS = {"standard": StandardScaler, "minmax": MinMaxScaler}
CLASSIFIERS = {
    "tree": (DecisionTreeClassifier, {"max_depth": [3, 5, 8], "max_features": [3, 5]}),
    "forest": (RandomForestClassifier, {"n_estimators": [8, 14], "max_depth": [3, 5, 8]}),
    "extra": (ExtraTreesClassifier, {"n_estimators": [8, 14], "max_depth": [3, 5, 8]}),
}


@dataclass
class Individual:
    scaler: str
    k_best: int
    classifier: str
    params: dict = field(default_factory=dict)
    fitness: float = float("nan")

    def copy(self):
        return Individual(self.scaler, self.k_best, self.classifier, dict(self.params))

    def describe(self):
        inner = ",".join(f"{k}={v}" for k, v in sorted(self.params.items()))
        return f"{self.scaler}>k{self.k_best}>{self.classifier}({inner})"


class PipelineSearch:
    def __init__(self, generations=4, population=8, folds=3, random_state=None):
        self.generations = generations
        self.population = population
        self.folds = folds
        self.random_state = random_state
        self._random = random.Random(random_state)
        self.history = []
        self.best_ = None

    # genetic operators -------------------------------------------------
    def _random_params(self, name):
        space = CLASSIFIERS[name][1]
        return {key: self._random.choice(values) for key, values in space.items()}

    def _random_individual(self):
        name = self._random.choice(sorted(CLASSIFIERS))
        return Individual(
            scaler=self._random.choice(sorted(SCALERS)),
            k_best=self._random.randint(5, 18),
            classifier=name,
            params=self._random_params(name),
        )

    def _mutate(self, ind):
        child = ind.copy()
        what = self._random.randrange(3)
        if what == 0:
            child.k_best = max(5, min(18, child.k_best + self._random.choice([-3, -1, 1, 3])))
        elif what == 1:
            child.params = self._random_params(child.classifier)
        else:
            child.classifier = self._random.choice(sorted(CLASSIFIERS))
            child.params = self._random_params(child.classifier)
        return child

    def _mate(self, a, b):
        child = a.copy()
        if self._random.random() < 0.5:
            child.k_best = b.k_best
        if self._random.random() < 0.5:
            child.scaler = b.scaler
        return child

    def _tournament(self, pool, size=3):
        return max(self._random.sample(pool, size), key=lambda ind: ind.fitness)

    # compiling and scoring ---------------------------------------------
    def _compile_to_sklearn(self, ind):
        cls = CLASSIFIERS[ind.classifier][0]
        pipeline = Pipeline([
            ("scale", SCALERS[ind.scaler]()),
            ("select", SelectKBest(f_classif, k=ind.k_best)),
            ("clf", cls(**ind.params)),
        ])
        if self.random_state:  # cause
            self._set_param_recursive(pipeline, "random_state", self.random_state)
        return pipeline

    @staticmethod
    def _set_param_recursive(pipeline, name, value):
        for _, step in pipeline.steps:
            if name in step.get_params():
                step.set_params(**{name: value})

    def _fit(self, pipeline, X, y):
        pipeline.fit(X, y)  # cause
        return pipeline

    def _evaluate(self, ind, X, y):
        cv = StratifiedKFold(self.folds, shuffle=True, random_state=self.random_state)
        scores = []
        for train, test in cv.split(X, y):
            pipeline = self._fit(self._compile_to_sklearn(ind), X[train], y[train])
            scores.append(pipeline.score(X[test], y[test]))
        return float(np.mean(scores))

    def fit(self, X, y):
        pool = [self._random_individual() for _ in range(self.population)]
        for gen in range(self.generations):
            for ind in pool:
                ind.fitness = self._evaluate(ind, X, y)
            pool.sort(key=lambda ind: -ind.fitness)
            mean = float(np.mean([ind.fitness for ind in pool]))
            self.history.append((gen, pool[0].fitness, mean, pool[0].describe()))
            log.info("generation %d best %.4f mean %.4f", gen, pool[0].fitness, mean)
            if self.best_ is None or pool[0].fitness > self.best_.fitness:
                self.best_ = pool[0]
            offspring = [pool[0].copy()]
            while len(offspring) < self.population:
                child = self._mate(self._tournament(pool), self._tournament(pool))
                if self._random.random() < 0.6:
                    child = self._mutate(child)
                offspring.append(child)
            pool = offspring
        self.fitted_pipeline_ = self._fit(self._compile_to_sklearn(self.best_), X, y)
        return self

    def score(self, X, y):
        return float(self.fitted_pipeline_.score(X, y))


def load_data():
    X, y = make_classification(
        n_samples=700, n_features=18, n_informative=8, n_redundant=4,
        flip_y=0.12, class_sep=0.7, random_state=11)
    return train_test_split(X, y, test_size=0.3, random_state=5, stratify=y)


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    X_train, X_test, y_train, y_test = load_data()
    search = PipelineSearch(random_state=0)
    search.fit(X_train, y_train)
    with open("history.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["generation", "best", "mean", "pipeline"])
        writer.writerows(search.history)
    result = {
        "pipeline": search.best_.describe(),
        "cv": search.best_.fitness,
        "test": search.score(X_test, y_test),
    }
    with open("best_pipeline.json", "w") as fh:
        json.dump(result, fh, indent=2)
    for gen, best, mean, text in search.history:
        print(f"gen {gen}: best={best:.4f} mean={mean:.4f} {text}")
    print("winner:", result["pipeline"])
    print(f"cv accuracy {result['cv']:.4f}, test accuracy {result['test']:.4f}")


if __name__ == "__main__":
    main()
