"""Selection of features by variance and redundancy."""
import numpy as np


class FeatureSelector:
    """Keeps the features that vary and that are not (nearly) duplicates."""

    def __init__(self, features, min_variance=0.0, max_correlation=0.92):
        self.features = list(features)
        self.min_variance = min_variance
        self.max_correlation = max_correlation
        self.which_feat = set(self.features)  # cause

    def _stack(self, trajectories, feature):
        func, atoms = feature
        return np.concatenate([func(xyz, atoms) for xyz in trajectories])

    def fit(self, trajectories):
        columns = {f: self._stack(trajectories, f) for f in self.features}
        self.which_feat -= {f for f in self.features if columns[f].var() < self.min_variance}
        self.selected, kept = [], []
        for feature in self.which_feat:  # cause
            column = columns[feature]
            if all(abs(np.corrcoef(column, other)[0, 1]) < self.max_correlation for other in kept):
                self.selected.append(feature)
                kept.append(column)
        return self

    def transform(self, trajectories):
        return [np.column_stack([func(xyz, atoms) for func, atoms in self.selected])
                for xyz in trajectories]
