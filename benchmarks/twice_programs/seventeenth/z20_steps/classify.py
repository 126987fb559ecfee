"""Naive Bayes on match features; scores and an assignment table."""
import argparse
import json
from pathlib import Path

import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import average_precision_score, brier_score_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB

COLUMNS = ["dist", "gap", "hits", "length"]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--train", type=Path, required=True)
    ap.add_argument("--real", type=Path, required=True)
    ap.add_argument("--out", type=Path, required=True)
    ap.add_argument("--cutoff", type=float, default=0.5)
    args = ap.parse_args()

    train = pd.read_csv(args.train)
    real = pd.read_csv(args.real)
    y = (train["origin"] == train["barcode"]).astype(int)
    folds = StratifiedKFold(5, shuffle=True, random_state=17)
    model = CalibratedClassifierCV(GaussianNB(), method="sigmoid", cv=folds)
    cv = cross_val_predict(model, train[COLUMNS], y, cv=folds, method="predict_proba")[:, 1]
    model.fit(train[COLUMNS], y)
    real["score"] = model.predict_proba(real[COLUMNS])[:, 1]

    keep = real[real["score"] >= args.cutoff]
    right = (keep["origin"] == keep["barcode"]).mean()
    result = {"train_ap": average_precision_score(y, cv), "brier": brier_score_loss(y, cv),
              "assigned": int(len(keep)), "precision": float(right),
              "mean_score": float(real["score"].mean())}
    real[["read", "barcode", "dist", "score"]].to_csv(args.out / "assigned.csv", index=False,
                                                     float_format="%.7f")
    (args.out / "metrics.json").write_text(json.dumps(result, indent=2))
    for key, val in result.items():
        print(f"  {key:11s} {val:.7f}" if isinstance(val, float) else f"  {key:11s} {val}")


if __name__ == "__main__":
    main()
