"""Comparison of sparse text classifiers with train/test times, plots and a zipped bundle, in the style of scikit-learn's document classification example."""
import argparse
import contextlib
import json
import logging
import sys
import warnings
import zipfile
from datetime import date
from pathlib import Path
from time import perf_counter, strftime, time

import joblib
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from faker import Faker
from joblib import Parallel, delayed
from sklearn import metrics
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.naive_bayes import ComplementNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.svm import LinearSVC

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
CATEGORIES = ["alt.atheism", "talk.religion.misc", "comp.graphics", "sci.space"]


def size_mb(docs):
    return sum(len(s.encode("utf-8")) for s in docs) / 1e6


def load_posts(n, seed):
    """Newsgroup-like posts: shared small talk plus overlapping topic words."""
    fake = Faker("en_US")
    fake.seed_instance(seed)
    rng = np.random.default_rng(seed)
    topic = np.random.default_rng(0)
    common = [f"word{w:04d}" for w in range(1500)]
    p = 1.0 / np.arange(1, 1501)
    p /= p.sum()
    topics = []
    for k in range(4):
        w = p.copy()
        boost = topic.choice(1500, 220, replace=False)
        w[boost] *= 3.0
        topics.append(w / w.sum())
    topics[1] = 0.6 * topics[0] + 0.4 * topics[1]
    data, target = [], rng.integers(0, 4, n)
    for y in target:
        words = rng.choice(common, size=int(rng.integers(30, 110)), p=topics[y])
        head = f"From: {fake.email()}\nSubject: {fake.sentence(nb_words=4)}\n"
        data.append(head + " ".join(words))
    return data, target


@contextlib.contextmanager
def section(title):
    print("=" * 80)
    print(title)
    print("_" * 80)
    t0 = time()
    yield
    logging.info("%s finished in %.3fs", title, time() - t0)


def vectorise_blocks(vec, docs, n_blocks=4):
    """transform() in two threads, blocks glued back in order."""
    from scipy.sparse import vstack
    step = -(-len(docs) // n_blocks)
    parts = Parallel(n_jobs=2, backend="threading")(
        delayed(vec.transform)(docs[i:i + step]) for i in range(0, len(docs), step))
    return vstack(parts).tocsr()


def benchmark(clf, name, X_train, y_train, X_test, y_test, verbose):
    print("_" * 80)
    print("Training: ")
    print(clf)
    t0 = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.fit(X_train, y_train)
    train_time = perf_counter() - t0
    print(f"train time: {train_time:.3}s")
    t0 = perf_counter()
    pred = clf.predict(X_test)
    test_time = perf_counter() - t0
    print(f"test time:  {test_time:.3}s")
    score = metrics.accuracy_score(y_test, pred)
    print(f"accuracy:   {score:.3}")
    if hasattr(clf, "coef_"):
        print(f"dimensionality: {clf.coef_.shape[1]}")
        print(f"density: {float(np.mean(clf.coef_ != 0)):.4f}")
    if verbose:
        print("confusion matrix:")
        print(metrics.confusion_matrix(y_test, pred))
    return {"name": name, "accuracy": score, "f1": metrics.f1_score(y_test, pred, average="macro"),
            "train_time": train_time, "test_time": test_time}, pred


def plot(df, out):
    fig, ax = plt.subplots(figsize=(7, 4))
    ax.barh(df.name, df.accuracy, color="tab:blue")
    ax.set_xlim(0, 1)
    ax.set_xlabel("test accuracy")
    fig.tight_layout()
    fig.savefig(out / "accuracy.png", dpi=70)
    plt.close(fig)
    fig, (a, b) = plt.subplots(1, 2, figsize=(9, 4), sharey=True)
    for axis, col in ((a, "train_time"), (b, "test_time")):
        axis.scatter(df[col], df.accuracy, s=60)
        for r in df.itertuples():
            axis.annotate(r.name, (getattr(r, col), r.accuracy), fontsize=7)
        axis.set_xlabel(f"{col.replace('_', ' ')} (s)")
    fig.suptitle("Score / time trade-off")
    fig.savefig(out / "score_vs_time.png", dpi=70)
    plt.close(fig)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--n-train", type=int, default=2200)
    ap.add_argument("--n-test", type=int, default=900)
    ap.add_argument("--select-chi2", type=int, default=900)
    ap.add_argument("--report", action="store_true", default=True)
    args = ap.parse_args()
    out = Path("bench_out")
    out.mkdir(exist_ok=True)
    train, y_train = load_posts(args.n_train, 1)
    test, y_test = load_posts(args.n_test, 2)

    with section("Feature extraction"):
        t0 = time()
        vec = TfidfVectorizer(sublinear_tf=True, max_df=0.5, min_df=4, stop_words="english")
        X_train = vec.fit_transform(train)
        duration = time() - t0
        print(f"{len(train)} documents - {size_mb(train):.2f}MB (training set), {len(CATEGORIES)} categories")
        print(f"vectorize training done in {duration:.3f}s at {size_mb(train) / duration:.3f}MB/s")
        print(f"n_samples: {X_train.shape[0]}, n_features: {X_train.shape[1]}")
        t0 = time()
        X_test = vectorise_blocks(vec, test)
        duration = time() - t0
        print(f"vectorize testing done in {duration:.3f}s at {size_mb(test) / duration:.3f}MB/s")
        print(f"n_samples: {X_test.shape[0]}, n_features: {X_test.shape[1]}, nnz: {X_test.nnz}")
    with section(f"Extracting {args.select_chi2} best features by a chi-squared test"):
        sel = SelectKBest(chi2, k=args.select_chi2)
        X_train, X_test = sel.fit_transform(X_train, y_train), sel.transform(X_test)
        names = vec.get_feature_names_out()[sel.get_support()]
        print("first selected:", ", ".join(names[:6]))

    rows, preds = [], {}
    with section("Benchmarking Classifiers"):
        for clf, name in (
            (LogisticRegression(C=5, max_iter=300), "Logistic Regression"),
            (RidgeClassifier(alpha=1.0, solver="sparse_cg"), "Ridge Classifier"),
            (KNeighborsClassifier(n_neighbors=40), "kNN"),
            (RandomForestClassifier(n_estimators=60, random_state=0, n_jobs=1), "Random Forest"),
            (LinearSVC(C=0.1, dual=False, max_iter=1000, random_state=0), "Linear SVC"),
            (SGDClassifier(loss="log_loss", alpha=1e-4, early_stopping=True, random_state=0), "log-loss SGD"),
            (NearestCentroid(), "NearestCentroid"),
            (ComplementNB(alpha=0.1), "Complement naive Bayes"),
        ):
            print("=" * 80)
            print(name)
            row, preds[name] = benchmark(clf, name, X_train, y_train, X_test, y_test, args.report)
            rows.append(row)
            if name == "Logistic Regression":
                joblib.dump({"model": clf, "trained_on": date.today(), "fit_seconds": row["train_time"]}, out / "logreg.joblib")

    df = pd.DataFrame(rows)
    df.to_csv(out / "scores.csv", index=False)
    plot(df, out)
    pd.DataFrame(preds).assign(y=y_test).to_csv(out / "predictions.csv", index=False)
    md = [f"### Text classifiers, {strftime('%Y-%m-%d %H:%M')}", "", "| classifier | accuracy | F1 | train | test |",
          "|:--|--:|--:|--:|--:|"]
    md += [f"| {r.name} | {r.accuracy:.4f} | {r.f1:.4f} | {r.train_time * 1000:.1f} ms | {r.test_time * 1000:.2f} ms |"
           for r in df.sort_values("accuracy", ascending=False, kind="stable").itertuples()]
    (out / "RESULTS.md").write_text("\n".join(md) + "\n")
    (out / "meta.json").write_text(json.dumps({"timestamp": time(), "n_features": int(X_train.shape[1]),
                                               "duration": float(df.train_time.sum() + df.test_time.sum())}))
    with zipfile.ZipFile(out / "bundle.zip", "w", zipfile.ZIP_DEFLATED) as z:
        for f in ("predictions.csv", "RESULTS.md", "meta.json"):
            z.write(out / f, f)
    print("\n".join(md[2:]))


if __name__ == "__main__":
    main()
