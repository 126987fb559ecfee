"""Style of scikit-learn/scikit-learn (examples/model_selection, benchmarks/). Differs in each run: '[CV] END ... total time=' of
verbose output, mean_fit_time & co. of cv_results_, refit_time_, learning curve fit times, MLP/GB verbose lines, joblib metadata."""
import sys
import time
import warnings
from datetime import datetime
from time import perf_counter

import joblib
import numpy as np
import pandas as pd
import sklearn
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import accuracy_score, classification_report, f1_score
from sklearn.model_selection import GridSearchCV, cross_validate, learning_curve, train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

t_start = datetime.now()
print(f"scikit-learn {sklearn.__version__}, {t_start:%c}")
X, y = make_classification(1500, 24, n_informative=8, n_classes=3, n_clusters_per_class=1, flip_y=0.05, random_state=4)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)

# %% Grid search with the verbose log of its candidates
pipe = Pipeline([("scaler", StandardScaler()), ("clf", SGDClassifier(random_state=0, max_iter=60, tol=1e-3))], verbose=False)
grid = GridSearchCV(pipe, {"clf__alpha": [1e-4, 1e-3, 1e-2], "clf__penalty": ["l2", "l1"]}, cv=4, verbose=3, n_jobs=1, return_train_score=True)
t0 = perf_counter()
grid.fit(X_train, y_train)
print(f"done in {perf_counter() - t0:.3f}s")
print("Best score: %0.4f, refit time %.4f s" % (grid.best_score_, grid.refit_time_))
print("Best parameters set:", grid.best_params_)
res = pd.DataFrame(grid.cv_results_)
res.to_csv("cv_results.csv")
print(res[["param_clf__alpha", "param_clf__penalty", "mean_test_score", "std_test_score", "mean_fit_time", "mean_score_time", "rank_test_score"]]
      .sort_values("rank_test_score", kind="stable").to_string(float_format=lambda v: f"{v:.5f}"))


# %% Benchmark of classifiers, as in plot_document_classification
def benchmark(clf, name):
    print("=" * 80)
    print(name)
    print("Training: ")
    print(clf)
    t0 = time.time()
    clf.fit(X_train, y_train)
    train_time = time.time() - t0
    print(f"train time: {train_time:.3}s")
    t0 = time.time()
    pred = clf.predict(X_test)
    test_time = time.time() - t0
    print(f"test time:  {test_time:.3}s")
    score = accuracy_score(y_test, pred)
    print(f"accuracy:   {score:.3}")
    return name, score, f1_score(y_test, pred, average="macro"), train_time, test_time, train_time / len(y_train) * 1e6


rows, models = [], {}
for clf, name in ((grid.best_estimator_, "SGD"), (RandomForestClassifier(40, random_state=1, verbose=1), "Random forest"),
                  (GradientBoostingClassifier(n_estimators=12, verbose=1, random_state=2), "Gradient boosting"),
                  (MLPClassifier((32,), max_iter=12, verbose=True, random_state=3), "MLP")):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows.append(benchmark(clf, name))
    models[name] = clf
table = pd.DataFrame(rows, columns=["classifier", "accuracy", "f1_macro", "train_time", "test_time", "us_per_sample"]).set_index("classifier")
print(table.round(4))
table.to_html("benchmark.html", float_format="%.4f")
table.to_csv("benchmark.csv")

# %% Scalability: learning curve with times
sizes, tr, te, fit_times, score_times = learning_curve(grid.best_estimator_, X, y, cv=3, train_sizes=[0.2, 0.5, 1.0], return_times=True)
for n, a, b, f, s in zip(sizes, tr.mean(1), te.mean(1), fit_times, score_times):
    print(f"n={n:5d} train {a:.4f} test {b:.4f} fit {f.mean() * 1e3:6.2f}±{f.std() * 1e3:.2f} ms, score {s.mean() * 1e3:.2f} ms")
cv = cross_validate(models["Random forest"].set_params(verbose=0), X, y, cv=3, scoring=["accuracy", "f1_macro"])
print({k: np.round(v, 4).tolist() for k, v in cv.items()})

print(classification_report(y_test, models["Random forest"].predict(X_test), digits=4))
joblib.dump({"models": models, "cv": cv, "trained_on": datetime.now(), "python": sys.version.split()[0], "runtime": datetime.now() - t_start},
            "models.joblib", compress=3)
pd.Series(models["Random forest"].predict(X_test)).to_csv("rf_predictions.csv", header=["label"], index_label="i")
print("Total running time of the script: (%d minutes %.3f seconds)" % divmod((datetime.now() - t_start).total_seconds(), 60))
