"""Feature selection by a genetic algorithm around a cross-validated estimator."""
import logging

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from .operators import crossover, mutate, random_mask, tournament, uniform

log = logging.getLogger("genetic")


class GeneticSelector:
    def __init__(self, estimator, cv, scoring="accuracy", n_population=20, n_generations=8,
                 crossover_proba=0.6, swap_proba=0.25, mutation_proba=0.3, flip_proba=0.06,
                 tournament_size=3, max_features=10, penalty=0.002):
        self.estimator = estimator
        self.cv = cv
        self.scoring = scoring
        self.n_population = n_population
        self.n_generations = n_generations
        self.crossover_proba = crossover_proba
        self.swap_proba = swap_proba
        self.mutation_proba = mutation_proba
        self.flip_proba = flip_proba
        self.tournament_size = tournament_size
        self.max_features = max_features
        self.penalty = penalty

    def _score(self, mask, X, y):
        key = tuple(mask)
        if key not in self._seen:
            n_on = sum(mask)
            if n_on == 0 or n_on > self.max_features:
                self._seen[key] = -10.0
            else:
                cols = np.flatnonzero(mask)
                s = cross_val_score(clone(self.estimator), X[:, cols], y, cv=self.cv,
                                    scoring=self.scoring)
                self._seen[key] = float(s.mean()) - self.penalty * n_on
        return self._seen[key]

    def fit(self, X, y):
        self._seen = {}
        n = X.shape[1]
        population = [random_mask(n, self.max_features) for _ in range(self.n_population)]
        self.history_ = []
        best, best_fit = None, -np.inf
        for gen in range(self.n_generations + 1):
            fitness = [self._score(m, X, y) for m in population]
            top = int(np.argmax(fitness))
            if fitness[top] > best_fit:
                best, best_fit = population[top], fitness[top]
            valid = [f for f in fitness if f > -1]
            self.history_.append(
                {"generation": gen, "best": round(max(fitness), 6),
                 "mean": round(float(np.mean(valid)), 6), "evaluated": len(self._seen)}
            )
            log.info("generation %d best %.5f mean %.5f", gen, max(fitness), np.mean(valid))
            if gen == self.n_generations:
                break
            children = [best]
            while len(children) < self.n_population:
                a = tournament(population, fitness, self.tournament_size)
                b = tournament(population, fitness, self.tournament_size)
                do_cross, do_mut_a, do_mut_b = uniform(3)
                if do_cross < self.crossover_proba:
                    a, b = crossover(a, b, self.swap_proba)
                if do_mut_a < self.mutation_proba:
                    a = mutate(a, self.flip_proba)
                if do_mut_b < self.mutation_proba:
                    b = mutate(b, self.flip_proba)
                children += [a, b]
            population = children[: self.n_population]
        self.support_ = np.array(best)
        self.best_fitness_ = best_fit
        return self

    def transform(self, X):
        return X[:, self.support_]
