"""Chooses the number of clusters by the stability of neighbouring solutions."""
import numpy as np
from sklearn.metrics import fowlkes_mallows_score

from .gmm import GaussianMixture


class ClusterAutoK:
    def __init__(self, n_clusters, max_runs, random_state):
        low, high = n_clusters
        self.ks = list(range(low - 1, high + 2))
        self.max_runs = max_runs
        self.random_state = random_state

    def fit(self, X):
        self.models = {}
        runs = []
        for i in range(self.max_runs):
            labels = {}
            for k in self.ks:
                model = GaussianMixture(n_clusters=k, random_state=i + self.random_state).fit(X)
                labels[k] = model.predict(X)
                best = self.models.get(k)
                if best is None or model.score(X) > best.score(X):
                    self.models[k] = model
            runs.append(labels)
        self.tested = self.ks[1:-1]
        self.mean_stability = self._stability(runs)
        self.best_k = self.tested[int(np.argmax(self.mean_stability))]
        self.best_model = self.models[self.best_k]
        return self

    def _stability(self, runs):
        """Mean agreement of k with k-1 and k+1 over pairs of runs."""
        values = []
        for k in self.tested:
            scores = []
            for i, a in enumerate(runs):
                for j, b in enumerate(runs):
                    if i < j:
                        scores.append(fowlkes_mallows_score(a[k], b[k - 1]))
                        scores.append(fowlkes_mallows_score(a[k], b[k + 1]))
            values.append(float(np.mean(scores)))
        return np.array(values)

    def predict(self, X):
        return self.best_model.predict(X)
