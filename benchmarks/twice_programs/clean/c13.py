"""scikit-learn: searches with verbose output, cv_results_ as CSV and a table, the fitted search by joblib, a report with a fit time for each model."""

import json
import logging
import pickle
import time
import warnings
from datetime import datetime
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import classification_report, confusion_matrix, roc_auc_score
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, StratifiedKFold, cross_validate, train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

warnings.filterwarnings("ignore")
logging.basicConfig(level=logging.INFO, format="%(asctime)s,%(msecs)03d %(name)s %(levelname)s %(message)s", datefmt="%H:%M:%S")
logger = logging.getLogger("bench")
SEED = 17


def frame():
    x, y = make_classification(400, 8, n_informative=5, random_state=SEED)
    df = pd.DataFrame(x, columns=[f"n{i}" for i in range(8)])
    df["kind"] = np.random.default_rng(SEED).choice(["a", "b", "c"], len(df))
    return df, y


def pipe(model):
    pre = ColumnTransformer([("num", StandardScaler(), [f"n{i}" for i in range(8)]), ("cat", OneHotEncoder(), ["kind"])])
    return Pipeline([("pre", pre), ("clf", model)], verbose=True)


def main():
    out = Path("models") / datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    out.mkdir(parents=True)
    df, y = frame()
    a, b, ya, yb = train_test_split(df, y, test_size=0.25, random_state=SEED, stratify=y)
    cv = StratifiedKFold(3, shuffle=True, random_state=SEED)
    models = {
        "logistic_regression": LogisticRegression(max_iter=200),
        "random_forest": RandomForestClassifier(20, random_state=SEED),
        "gradient_boosting": GradientBoostingClassifier(n_estimators=10, random_state=SEED, verbose=1),
        "mlp": MLPClassifier((8,), max_iter=20, random_state=SEED),
    }
    rows = []
    for name, model in models.items():
        start = time.time()
        p = pipe(model).fit(a, ya)
        seconds = time.time() - start
        start = time.perf_counter()
        proba = p.predict_proba(b)[:, 1]
        latency = (time.perf_counter() - start) / len(b) * 1e6
        rows.append({"Model": name, "Accuracy": p.score(b, yb), "ROC_AUC": roc_auc_score(yb, proba), "Training_Time_Seconds": seconds, "us_per_row": latency})
        logger.info("%-20s auc=%.4f fit %.3f s predict %.1f us/row", name, rows[-1]["ROC_AUC"], seconds, latency)
        joblib.dump(p, out / f"{name}.joblib")
    table = pd.DataFrame(rows).sort_values("ROC_AUC", ascending=False)
    table.to_csv(out / "training_results_summary.csv", index=False, float_format="%.4f")
    print(table.round(3).to_string(index=False))
    grid = GridSearchCV(pipe(LogisticRegression(max_iter=200)).set_params(verbose=False), {"clf__C": [0.1, 1, 10]}, cv=cv, verbose=3, return_train_score=True).fit(a, ya)
    rand = RandomizedSearchCV(pipe(RandomForestClassifier(random_state=SEED)).set_params(verbose=False), {"clf__n_estimators": [5, 10, 15], "clf__max_depth": [2, 4, None]}, n_iter=4, cv=cv, random_state=SEED, verbose=2).fit(a, ya)
    for name, search in ("grid", grid), ("random", rand):
        results = pd.DataFrame(search.cv_results_)
        results.to_csv(out / f"{name}.csv")
        results.to_pickle(out / f"{name}.pkl")
        joblib.dump(search, out / f"{name}.joblib", compress=3)
        print(name, search.best_params_, f"{search.best_score_:.4f}", f"refit {search.refit_time_:.3f}s", f"mean fit {results['mean_fit_time'].mean():.4f}s")
    scores = cross_validate(pipe(GradientBoostingClassifier(n_estimators=5, random_state=SEED)).set_params(verbose=False), df, y, cv=cv, scoring=["accuracy", "roc_auc"])
    print({k: v.round(3).tolist() for k, v in scores.items()})
    with open(out / "scores.pkl", "wb") as f:
        pickle.dump(scores, f)
    best = grid.best_estimator_.predict(b)
    print(classification_report(yb, best, digits=4), confusion_matrix(yb, best), sep="\n")
    (out / "training_config.txt").write_text(f"Training Configuration\n{'=' * 40}\nTimestamp: {datetime.now():%Y-%m-%d_%H-%M-%S}\nCPU Cores: 2\nDataset Shape: {df.shape}\nTotal Training Time: {sum(r['Training_Time_Seconds'] for r in rows):.2f}s\n")
    (out / "metrics.json").write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
