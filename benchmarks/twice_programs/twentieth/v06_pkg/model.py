"""Response model on the balanced data."""
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

NAMES = ["age", "age2", "woman", "unknown_gender", "tenure", "tokyo", "kanagawa"]


def design(frame):
    tenure = (pd.Timestamp("2019-10-31") - frame["application_date"]).dt.days
    return np.column_stack([
        frame["age"] / 10, (frame["age"] / 10) ** 2, frame["gender_cd"] == 1, frame["gender_cd"] == 9,
        tenure / 365, frame["prefecture"] == "Tokyo", frame["prefecture"] == "Kanagawa",
    ]).astype(float)


def train_response_model(frame, seed):
    X, y = design(frame), frame["is_buyer"].to_numpy()
    aucs = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y):
        booster = HistGradientBoostingClassifier(max_iter=30, random_state=seed).fit(X[train], y[train])
        aucs.append(roc_auc_score(y[test], booster.predict_proba(X[test])[:, 1]))
    linear = LogisticRegression(max_iter=1000).fit(X, y)
    return {
        "auc": [float(a) for a in aucs],
        "auc_mean": float(np.mean(aucs)),
        "auc_std": float(np.std(aucs)),
        "coefficients": dict(zip(NAMES, linear.coef_[0].tolist())),
    }
