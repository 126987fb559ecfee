"""Predict whether a customer subscribes: compare three classifiers.

The course project as a script: load the contacts, encode, split, scale, fit a
dummy, a k-NN and a tree, plot the accuracies and store the best one.

Modelled on: https://cursos.alura.com.br/forum/topico-e-normal-o-grafico-ser-diferente-da-aula-119121
"""
import json
import pathlib
import pickle
from datetime import datetime

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, confusion_matrix, recall_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

SEED = 42
CSV = pathlib.Path("contacts.csv")
CATEGORICAL = ["job", "marital", "channel"]
NUMERIC = ["age", "balance", "duration", "campaign"]


def make_contacts(path, n=1200):
    """A synthetic marketing campaign."""
    rng = np.random.default_rng(SEED)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, size=n),
            "job": rng.choice(["admin", "services", "technician", "retired", "student"], size=n),
            "marital": rng.choice(["single", "married", "divorced"], size=n, p=[0.3, 0.55, 0.15]),
            "balance": np.round(rng.lognormal(7, 1.1, size=n), 2),
            "channel": rng.choice(["cellular", "telephone"], size=n, p=[0.7, 0.3]),
            "duration": rng.integers(20, 900, size=n),
            "campaign": rng.poisson(2.2, size=n) + 1,
        }
    )
    score = (
        0.005 * (frame.duration - 400)
        + 0.6 * (frame.channel == "cellular")
        - 0.25 * frame.campaign
        + 0.7 * frame.job.isin(["student", "retired"])
        + 0.0003 * (frame.balance - 1500).clip(-1500, 3000)
    )
    chance = 1 / (1 + np.exp(-score))
    frame["subscribed"] = np.where(rng.random(n) < chance, "yes", "no")
    frame.to_csv(path, index=False)


def encode(frame):
    """One-hot columns for the categories, the numbers as they are."""
    encoder = OneHotEncoder(drop="if_binary", sparse_output=False)
    hot = encoder.fit_transform(frame[CATEGORICAL])
    x = np.column_stack([hot, frame[NUMERIC].to_numpy(dtype=float)])
    names = list(encoder.get_feature_names_out(CATEGORICAL)) + NUMERIC
    return pd.DataFrame(x, columns=names), (frame.subscribed == "yes").astype(int)


def classifiers():
    return {
        "dummy": DummyClassifier(strategy="most_frequent"),
        "knn": KNeighborsClassifier(n_neighbors=7),
        "tree": DecisionTreeClassifier(max_depth=4, random_state=SEED),
    }


def compare(x_train, x_test, y_train, y_test):
    scaler = MinMaxScaler().fit(x_train)
    results, fitted = {}, {}
    for name, model in classifiers().items():
        model.fit(scaler.transform(x_train), y_train)
        predicted = model.predict(scaler.transform(x_test))
        results[name] = {
            "accuracy": round(float(accuracy_score(y_test, predicted)), 4),
            "recall": round(float(recall_score(y_test, predicted)), 4),
            "confusion": confusion_matrix(y_test, predicted).tolist(),
        }
        fitted[name] = (scaler, model)
    return results, fitted


def plot(results, path):
    figure, axis = plt.subplots(figsize=(5, 3))
    names = list(results)
    axis.bar(names, [results[n]["accuracy"] for n in names], color="tab:blue")
    axis.set_ylim(0, 1)
    axis.set_ylabel("accuracy")
    figure.tight_layout()
    figure.savefig(path, metadata={"Software": None})
    plt.close(figure)


def main():
    make_contacts(CSV)
    frame = pd.read_csv(CSV)
    x, y = encode(frame)
    x_train, x_test, y_train, y_test = train_test_split(x, y, stratify=y, test_size=0.25)  # cause
    results, fitted = compare(x_train, x_test, y_train, y_test)
    best = max(results, key=lambda n: (results[n]["accuracy"], n))
    scaler, model = fitted[best]

    pathlib.Path("results.json").write_text(json.dumps({"best": best, "results": results}, indent=1))
    scored = frame.loc[x_test.index].assign(predicted=model.predict(scaler.transform(x_test)))
    scored.sort_index().to_csv("scored.csv")
    with open("best_model.pkl", "wb") as handle:
        pickle.dump((scaler, model), handle)
    plot(results, "accuracy.png")

    print(f"run of {datetime.now():%Y-%m-%d %H:%M:%S}")
    print(f"{len(x_train)} rows for training, {len(x_test)} for testing")
    for name, row in results.items():
        print(f"{name:6s} accuracy {row['accuracy']:.4f}  recall {row['recall']:.4f}  {row['confusion']}")
    print(f"best: {best}")


if __name__ == "__main__":
    main()
