"""Baseline classifier on colour histograms."""
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from .colorspace import rgb_to_hsv


def features(images, bins=12):
    out = []
    for im in images:
        hsv = rgb_to_hsv(im)
        f = [np.histogram(hsv[..., c], bins=bins, range=(0, 1))[0] / hsv[..., 0].size for c in range(3)]
        out.append(np.concatenate(f + [im.reshape(-1, 3).std(0) / 255]))
    return np.array(out)


def evaluate(x_train, y_train, x_test, y_test, seed):
    clf = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=300, random_state=seed))
    clf.fit(features(x_train), y_train)
    p = clf.predict_proba(features(x_test))
    return {"accuracy": float((p.argmax(1) == y_test).mean()),
            "log_loss": float(-np.log(p[np.arange(len(p)), y_test] + 1e-12).mean())}
