"""Credit-default style benchmark: scikit-learn pipelines, grid search, joblib artefacts."""
import json
import logging
import os
import platform
import tempfile
import time
from datetime import datetime, timezone

import joblib
import numpy as np
import pandas as pd
import sklearn
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, classification_report, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

SEED = 7
NUMERIC = ["income", "age", "debt_ratio", "n_accounts"]
CATEGORICAL = ["region", "employment"]
ARTIFACTS = "artifacts"

log = logging.getLogger("credit")


def load_data(n=1200):
    rng = np.random.default_rng(SEED)
    df = pd.DataFrame({
        "income": rng.lognormal(10, 0.5, n),
        "age": rng.integers(18, 80, n).astype(float),
        "debt_ratio": rng.beta(2, 5, n),
        "n_accounts": rng.poisson(4, n).astype(float),
        "region": rng.choice(["north", "south", "east", "west"], n),
        "employment": rng.choice(["salaried", "self", "none"], n, p=[0.7, 0.2, 0.1]),
    })
    z = (-1.2 - 0.8 * (np.log(df.income) - 10) + 4.0 * df.debt_ratio - 0.02 * (df.age - 40)
         + 0.9 * (df.employment == "none") - 0.3 * (df.region == "north"))
    df["default"] = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    for c in NUMERIC:
        df.loc[rng.random(n) < 0.05, c] = np.nan
    return df


def preprocessor(cache_dir=None):
    num = Pipeline([("impute", SimpleImputer(strategy="median")), ("scale", StandardScaler())])
    cat = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return ColumnTransformer([("num", num, NUMERIC), ("cat", cat, CATEGORICAL)])


def candidates(cache):
    def pipe(est):
        return Pipeline([("prep", preprocessor()), ("clf", est)], memory=cache)
    return {
        "logreg": (pipe(LogisticRegression(max_iter=500)), {"clf__C": [0.1, 1.0, 10.0]}),
        "forest": (pipe(RandomForestClassifier(n_estimators=40, random_state=SEED)),
                   {"clf__max_depth": [4, 8]}),
        "hgb": (pipe(HistGradientBoostingClassifier(max_iter=40, random_state=SEED)),
                {"clf__learning_rate": [0.05, 0.1]}),
    }


def main():
    os.makedirs(ARTIFACTS, exist_ok=True)
    logging.basicConfig(filename=os.path.join(ARTIFACTS, "run.log"), level=logging.INFO,
                        format="[%(asctime)s] %(process)d %(name)s: %(message)s")
    t_start = time.perf_counter()
    df = load_data()
    X, y = df[NUMERIC + CATEGORICAL], df["default"]
    X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.25, stratify=y, random_state=SEED)
    print(f"Loaded {len(df)} rows, positive rate {y.mean():.4f}")

    cv = StratifiedKFold(n_splits=4, shuffle=True, random_state=SEED)
    rows, best_model, best_name, best_auc = [], None, None, -1.0
    with tempfile.TemporaryDirectory(prefix="skcache_") as tmp:
        log.info("using transformer cache %s", tmp)
        print(f"transformer cache: {tmp}")
        memory = joblib.Memory(tmp, verbose=0)
        for name, (pipe, grid) in candidates(memory).items():
            t0 = time.perf_counter()
            gs = GridSearchCV(pipe, grid, scoring="roc_auc", cv=cv, n_jobs=1)
            gs.fit(X_tr, y_tr)
            proba = gs.predict_proba(X_te)[:, 1]
            auc = roc_auc_score(y_te, proba)
            elapsed = time.perf_counter() - t0
            pd.DataFrame(gs.cv_results_).to_csv(f"{ARTIFACTS}/cv_{name}.csv", index=False)
            rows.append({"model": name, "cv_auc": gs.best_score_, "test_auc": auc,
                         "brier": brier_score_loss(y_te, proba),
                         "params": json.dumps(gs.best_params_), "fit_time_s": round(elapsed, 3)})
            log.info("%s: cv auc=%.5f test auc=%.5f (%.2f s)", name, gs.best_score_, auc, elapsed)
            print(f"{name:<8s} cv_auc={gs.best_score_:.5f} test_auc={auc:.5f}  [{elapsed:.2f}s]")
            if gs.best_score_ > best_auc:
                best_model, best_name, best_auc = gs.best_estimator_, name, gs.best_score_
    best_model.set_params(memory=None)

    board = pd.DataFrame(rows).sort_values("cv_auc", ascending=False)
    board.to_csv(f"{ARTIFACTS}/leaderboard.csv", index=False)
    print("\n" + board.to_string(index=False))
    print("\nBest model:", best_name)
    print(classification_report(y_te, best_model.predict(X_te), digits=4))

    pd.DataFrame({"row": X_te.index, "proba": best_model.predict_proba(X_te)[:, 1],
                  "target": y_te.to_numpy()}).to_csv(f"{ARTIFACTS}/test_scores.csv", index=False)
    joblib.dump({"model": best_model, "features": NUMERIC + CATEGORICAL,
                 "trained_at": datetime.now(timezone.utc).isoformat(),
                 "sklearn": sklearn.__version__}, f"{ARTIFACTS}/model.joblib")
    with open(f"{ARTIFACTS}/metadata.json", "w") as f:
        json.dump({"best": best_name, "cv_auc": best_auc, "seed": SEED,
                   "host": platform.node(), "python": platform.python_version(),
                   "created": datetime.now().strftime("%Y-%m-%d %H:%M:%S"),
                   "duration_sec": time.perf_counter() - t_start}, f, indent=2)
    print(f"done in {time.perf_counter() - t_start:.2f} seconds")


if __name__ == "__main__":
    main()
