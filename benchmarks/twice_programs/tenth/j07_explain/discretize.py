"""Quartile bins for continuous features."""
import numpy as np


class QuartileDiscretizer:
    def __init__(self, data, feature_names):
        self.names = list(feature_names)
        self.edges = [np.unique(np.percentile(data[:, j], [25, 50, 75]))
                      for j in range(data.shape[1])]
        self.stats = []
        for j, edges in enumerate(self.edges):
            code = np.searchsorted(edges, data[:, j])
            per_bin = []
            for b in range(len(edges) + 1):
                vals = data[code == b, j]
                if len(vals) == 0:
                    vals = data[:, j]
                per_bin.append((len(vals) / len(data), vals.mean(), vals.std() + 1e-9,
                                vals.min(), vals.max()))
            self.stats.append(per_bin)

    def codes(self, row):
        return np.array([np.searchsorted(e, v) for e, v in zip(self.edges, row)])

    def describe(self, j, code):
        edges, name = self.edges[j], self.names[j]
        if code == 0:
            return f"{name} <= {edges[0]:.2f}"
        if code == len(edges):
            return f"{name} > {edges[-1]:.2f}"
        return f"{edges[code - 1]:.2f} < {name} <= {edges[code]:.2f}"
