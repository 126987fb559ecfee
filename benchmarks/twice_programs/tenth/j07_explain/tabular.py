"""Local explanations of single predictions by a weighted linear model."""
import numpy as np
from sklearn.linear_model import Ridge
from sklearn.utils import check_random_state

from .discretize import QuartileDiscretizer


class Explanation:
    def __init__(self, names, weights, intercept, local_pred, score):
        self.names = names
        self.weights = weights
        self.intercept = intercept
        self.local_pred = local_pred
        self.score = score

    def as_list(self):
        return list(zip(self.names, self.weights))


class TabularExplainer:
    def __init__(self, training_data, feature_names, kernel_width=None, random_state=None):
        self.data = np.asarray(training_data)
        self.disc = QuartileDiscretizer(self.data, feature_names)
        self.kernel_width = kernel_width or 0.75 * np.sqrt(self.data.shape[1])
        self.random_state = check_random_state(random_state)  # cause

    def _neighbourhood(self, row, num_samples):
        k = len(row)
        code = self.disc.codes(row)
        binary = np.ones((num_samples, k))
        inverse = np.tile(row, (num_samples, 1)).astype(float)
        u = self.random_state.random_sample((2, num_samples, k))  # cause
        for j in range(k):
            stats = self.disc.stats[j]
            cum = np.cumsum([s[0] for s in stats])
            bins = np.minimum(np.searchsorted(cum, u[0, 1:, j] * cum[-1]), len(stats) - 1)
            lo = np.array([s[3] for s in stats])[bins]
            hi = np.array([s[4] for s in stats])[bins]
            inverse[1:, j] = lo + u[1, 1:, j] * (hi - lo)
            binary[1:, j] = bins == code[j]
        return binary, inverse

    def explain_instance(self, row, predict_fn, num_features=5, num_samples=1000):
        binary, inverse = self._neighbourhood(row, num_samples)
        y = np.asarray(predict_fn(inverse))
        dist = np.sqrt(((binary - binary[0]) ** 2).sum(1))
        w = np.sqrt(np.exp(-(dist ** 2) / self.kernel_width ** 2))
        full = Ridge(alpha=0.01).fit(binary, y, sample_weight=w)
        used = np.argsort(-np.abs(full.coef_ * binary[0]), kind="stable")[:num_features]
        model = Ridge(alpha=1.0).fit(binary[:, used], y, sample_weight=w)
        order = np.argsort(-np.abs(model.coef_), kind="stable")
        code = self.disc.codes(row)
        names = [self.disc.describe(used[i], code[used[i]]) for i in order]
        return Explanation(
            names,
            model.coef_[order].tolist(),
            float(model.intercept_),
            float(model.predict(binary[:1, used])[0]),
            float(model.score(binary[:, used], y, sample_weight=w)),
        )
