"""Simulated sensor epochs and the decoder."""
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def make_epochs(n_epochs, n_channels, n_times, snr, seed):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], n_epochs // 2)
    pattern = rng.normal(size=n_channels)
    course = np.exp(-0.5 * ((np.arange(n_times) - n_times / 2) / (n_times / 8)) ** 2)
    noise = rng.normal(size=(len(y), n_channels, n_times))
    noise = noise + 0.4 * np.roll(noise, 1, axis=2)
    signal = (2 * y - 1)[:, None, None] * pattern[None, :, None] * course[None, None, :]
    return noise + snr * signal, y


def cross_val_auc(X, y, n_splits=3):
    """Mean AUC of a regularised decoder; folds are contiguous within a class."""
    scores = []
    for train, test in StratifiedKFold(n_splits).split(X, y):
        clf = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, solver="lbfgs", max_iter=60))
        clf.fit(X[train], y[train])
        scores.append(roc_auc_score(y[test], clf.decision_function(X[test])))
    return float(np.mean(scores))
