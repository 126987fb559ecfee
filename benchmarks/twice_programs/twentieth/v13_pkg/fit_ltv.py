"""Fits and scores the lifetime-value model."""
import argparse
import json

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", required=True)
    parser.add_argument("--seed", type=int, required=True)
    args = parser.parse_args()

    table = pd.read_csv(args.features)
    names = [c for c in table.columns if c not in ("customer_id", "ltv")]
    X, y = table[names].to_numpy(float), np.log1p(table["ltv"].to_numpy(float))
    folds = KFold(5, shuffle=True, random_state=args.seed)
    models = {
        "ridge": make_pipeline(StandardScaler(), Ridge(alpha=2.0)),
        "boosting": GradientBoostingRegressor(n_estimators=60, max_depth=3, subsample=0.8, random_state=args.seed),
    }
    report, predictions = {}, []
    for name, model in models.items():
        pred = cross_val_predict(model, X, y, cv=folds)
        predictions.append(pred)
        report[name] = {"mae": float(mean_absolute_error(y, pred)), "r2": float(r2_score(y, pred))}
        print(f"{name:<9} MAE {report[name]['mae']:.10f} R2 {report[name]['r2']:.10f}")
    ridge = models["ridge"].fit(X, y)
    report["coefficients"] = dict(zip(names, ridge[-1].coef_.tolist()))
    with open("ltv_model.json", "w") as fh:
        json.dump(report, fh, indent=2)
    np.save("ltv_predictions.npy", np.array(predictions))


if __name__ == "__main__":
    main()
