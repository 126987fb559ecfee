"""Small AutoML over scikit-learn models with a leaderboard and a folder for each model.

Modelled on: mljar/mljar-supervised (AutoML_1/README.md, leaderboard.csv with train_time,
<model>/README.md, framework.json, predictions_out_of_folds.csv, errors.md).
"""
import json
import os
import time
import uuid
from datetime import datetime
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

SEED = 123
FOLDS = 3
RESULTS = Path("AutoML_1")

MODELS = [
    ("1_Baseline", "Baseline", lambda: DummyClassifier(strategy="prior")),
    ("2_DecisionTree", "Decision Tree", lambda: DecisionTreeClassifier(max_depth=4, random_state=SEED)),
    ("3_Linear", "Linear", lambda: make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=300))),
    ("4_Default_RandomForest", "Random Forest", lambda: RandomForestClassifier(30, max_depth=7, random_state=SEED)),
    ("5_Default_ExtraTrees", "Extra Trees", lambda: ExtraTreesClassifier(30, max_depth=7, random_state=SEED)),
    ("6_Default_HistGB", "HistGB", lambda: HistGradientBoostingClassifier(max_iter=30, random_state=SEED)),
    ("7_Default_NearestNeighbors", "Nearest Neighbors", lambda: make_pipeline(StandardScaler(), KNeighborsClassifier(9))),
]


def load():
    x, y = make_classification(800, 18, n_informative=8, n_redundant=4, flip_y=0.05, class_sep=0.9, random_state=SEED)
    return pd.DataFrame(x, columns=[f"feature_{i}" for i in range(1, 19)]), pd.Series(y, name="target")


def metrics(y, p):
    h = (p > 0.5).astype(int)
    return {"logloss": log_loss(y, p), "auc": roc_auc_score(y, p), "f1": f1_score(y, h), "accuracy": accuracy_score(y, h)}


def train_one(name, kind, make, x, y, splits):
    folder = RESULTS / name
    folder.mkdir(parents=True)
    t0 = time.time()
    oof = np.zeros(len(y))
    single, fold_log = [], []
    for k, (tr, va) in enumerate(splits):
        t = time.time()
        model = make().fit(x.iloc[tr], y.iloc[tr])
        fit = time.time() - t
        t = time.time()
        oof[va] = model.predict_proba(x.iloc[va])[:, 1]
        pred = time.time() - t
        single.append(1000 * pred / len(va))
        fold_log.append({"fold": k, "fit_time": fit, "predict_time": pred, "logloss": log_loss(y.iloc[va], oof[va])})
        joblib.dump(model, folder / f"learner_fold_{k}.joblib")
    train_time = time.time() - t0
    m = metrics(y, oof)
    pd.DataFrame({"target": y, "prediction_0": 1 - oof, "prediction_1": oof}).to_csv(
        folder / "predictions_out_of_folds.csv", index=False)
    (folder / "framework.json").write_text(json.dumps({
        "uid": str(uuid.uuid4()), "name": name, "learner": kind, "model_status": "ready", "metric_name": "logloss",
        "final_loss": m["logloss"], "folds": fold_log, "train_time": train_time, "single_prediction_time": float(np.mean(single)),
        "saved": datetime.now().strftime("%Y-%m-%d %H:%M:%S"), "mljar_version": "1.1.9", "is_stacked": False}, indent=4))
    cm = confusion_matrix(y, oof > 0.5)
    (folder / "README.md").write_text(
        f"# Summary of {name}\n\n[<< Go back](../README.md)\n\n## {kind}\n- **n_jobs**: 1\n- **explain_level**: 1\n\n"
        f"## Validation\n - **validation_type**: kfold\n - **k_folds**: {FOLDS}\n - **shuffle**: True\n - **stratify**: True\n\n"
        f"## Optimized metric\nlogloss\n\n## Training time\n\n{train_time:.1f} seconds\n\n## Metric details\n"
        f"|           |    score |\n|:----------|---------:|\n" + "".join(f"| {k:9s} | {v:.6f} |\n" for k, v in m.items())
        + "\n## Confusion matrix\n|                |   Predicted as 0 |   Predicted as 1 |\n|:---------------|-----------------:|-----------------:|\n"
        + "".join(f"| Labeled as {i}   | {cm[i, 0]:16d} | {cm[i, 1]:16d} |\n" for i in range(2)))
    return {"name": name, "model_type": kind, "metric_type": "logloss", "metric_value": m["logloss"],
            "train_time": train_time, "single_prediction_time": float(np.mean(single))}, oof


def ensemble(oofs, y, names):
    """Greedy forward selection on the out of fold predictions, as in Caruana et al."""
    t0 = time.time()
    chosen, total, best = [], np.zeros(len(y)), np.inf
    for step in range(1, 9):
        scores = [log_loss(y, (total + o) / step) for o in oofs]
        k = int(np.argmin(scores))
        if scores[k] >= best:
            break
        best, total = scores[k], total + oofs[k]
        chosen.append(names[k])
    weights = {n: chosen.count(n) for n in dict.fromkeys(chosen)}
    return weights, total / len(chosen), best, time.time() - t0


def main():
    print(f"AutoML directory: {RESULTS}")
    print("The task is binary_classification with evaluation metric logloss")
    print("AutoML will use algorithms: " + str([k for _, k, _ in MODELS]))
    print("AutoML will ensemble available models")
    start = time.time()
    x, y = load()
    splits = list(StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(x, y))
    rows, oofs = [], []
    for step, (name, kind, make) in enumerate(MODELS):
        if step in (0, 3):
            print(f"* Step {'simple' if step == 0 else 'default'}_algorithms will try to check up to {3 if step == 0 else 4} models")
        row, oof = train_one(name, kind, make, x, y, splits)
        rows.append(row)
        oofs.append(oof)
        print(f"{name} logloss {row['metric_value']:.6f} trained in {row['train_time']:.2f} seconds"
              f" (1-sample predict time {row['single_prediction_time']:.4f} seconds)", flush=True)
    print("* Step ensemble will try to check up to 1 model")
    weights, pred, loss, took = ensemble(oofs, y, [r["name"] for r in rows])
    folder = RESULTS / "Ensemble"
    folder.mkdir()
    (folder / "ensemble.json").write_text(json.dumps({"selected_models": weights, "final_loss": loss, "train_time": took}, indent=4))
    np.save(folder / "oof.npy", pred)
    print(f"Ensemble logloss {loss:.6f} trained in {took:.2f} seconds")
    rows.append({"name": "Ensemble", "model_type": "Ensemble", "metric_type": "logloss", "metric_value": loss,
                 "train_time": took, "single_prediction_time": sum(r["single_prediction_time"] for r in rows if r["name"] in weights)})
    board = pd.DataFrame(rows)
    board.to_csv(RESULTS / "leaderboard.csv", index=False)
    best = board.loc[board.metric_value.idxmin(), "name"]
    lines = ["# AutoML Leaderboard", "", "| Best model   | name | model_type | metric_type | metric_value | train_time |",
             "|:-------------|:-----|:-----------|:------------|-------------:|-----------:|"]
    for r in board.itertuples():
        mark = "**the best**" if r.name == best else ""
        lines.append(f"| {mark:12s} | [{r.name}]({r.name}/README.md) | {r.model_type} | {r.metric_type} | {r.metric_value:.6f} | {r.train_time:.2f} |")
    lines += ["", f"Created {datetime.now():%A %d %B %Y, %H:%M:%S} by process {os.getpid()}", ""]
    (RESULTS / "README.md").write_text("\n".join(lines))
    (RESULTS / "params.json").write_text(json.dumps({
        "mode": "Explain", "ml_task": "binary_classification", "results_path": str(RESULTS.resolve()), "total_time_limit": 3600,
        "saved": [r["name"] for r in rows], "best_model": best, "fit_level": "finished", "random_state": SEED,
        "start_time": start, "elapsed": time.time() - start}, indent=4))
    print(f"AutoML fit time: {time.time() - start:.2f} seconds")
    print(f"AutoML best model: {best}")


if __name__ == "__main__":
    main()
