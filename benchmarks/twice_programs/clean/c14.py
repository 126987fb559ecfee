"""Searches: Optuna with its log and trials as a frame, hyperopt with its bar and trials pickled, LightGBM and XGBoost logs, a study by joblib."""

import logging
import pickle
import sys
import time
from functools import partial

import hyperopt
import joblib
import lightgbm as lgb
import numpy as np
import optuna
import pandas as pd
import xgboost as xgb
from hyperopt import STATUS_OK, Trials, fmin, hp, tpe
from sklearn.datasets import make_regression
from sklearn.model_selection import train_test_split


def load():
    x, y = make_regression(300, 10, noise=5, random_state=6)
    return train_test_split(x, y, random_state=6)


class TimedCallback:
    """As in xgboost's documentation: seconds for each round."""

    def __init__(self, every):
        self.every, self.start = every, time.time()

    def __call__(self, env):
        if env.iteration % self.every == 0:
            name, metric, value, _ = env.evaluation_result_list[0]
            print(f"[{time.time() - self.start:6.2f}s] [{env.iteration:3d}] {name}-{metric}: {value:.5f}")


def boost(a, b, ya, yb, rate, leaves):
    start = time.perf_counter()
    model = lgb.train(
        {"objective": "l2", "metric": "rmse", "learning_rate": rate, "num_leaves": leaves, "verbosity": -1, "seed": 1, "num_threads": 1, "deterministic": True, "force_row_wise": True},
        lgb.Dataset(a, ya),
        20,
        valid_sets=[lgb.Dataset(b, yb)],
        callbacks=[TimedCallback(10)],
    )
    return model, model.best_score["valid_0"]["rmse"], time.perf_counter() - start


def objective(trial, data):
    rate, leaves = trial.suggest_float("rate", 0.05, 0.5, log=True), trial.suggest_int("leaves", 4, 15)
    _, score, took = boost(*data, rate, leaves)
    trial.set_user_attr("fit_seconds", took)
    trial.set_user_attr("worker", f"pid-{__import__('os').getpid()}")
    return score


def main():
    data = a, b, ya, yb = load()
    optuna.logging.get_logger("optuna").addHandler(logging.StreamHandler(sys.stdout))
    study = optuna.create_study(study_name="lgb", sampler=optuna.samplers.TPESampler(seed=10, n_startup_trials=3))
    study.optimize(partial(objective, data=data), n_trials=6, show_progress_bar=False)
    frame = study.trials_dataframe()
    frame.to_csv("trials.csv", index=False)
    print(frame[["number", "value", "duration", "params_leaves"]].to_string())
    joblib.dump(study, "study.pkl")
    print("Best", study.best_params, f"{study.best_value:.5f}", f"mean duration {frame['duration'].mean().total_seconds():.3f}s")
    trials = Trials()

    def loss(space):
        t = time.time()
        d = xgb.DMatrix(a, ya)
        found = {}
        xgb.train({"max_depth": int(space["depth"]), "eta": space["eta"], "nthread": 1, "seed": 3}, d, 12, [(xgb.DMatrix(b, yb), "eval")], evals_result=found, verbose_eval=6)
        return {"loss": found["eval"]["rmse"][-1], "status": STATUS_OK, "eval_time": time.time(), "took": time.time() - t}

    best = fmin(loss, {"depth": hp.quniform("depth", 2, 5, 1), "eta": hp.uniform("eta", 0.1, 0.6)}, tpe.suggest, 6, trials=trials, rstate=np.random.default_rng(4))
    print("hyperopt", hyperopt.space_eval({"depth": hp.quniform("depth", 2, 5, 1), "eta": hp.uniform("eta", 0.1, 0.6)}, best))
    with open("trials.pkl", "wb") as f:
        pickle.dump(trials.trials, f)
    pd.DataFrame([{"tid": t["tid"], "loss": t["result"]["loss"], "began": t["book_time"], "ended": t["refresh_time"], "took": t["result"]["took"]} for t in trials.trials]).to_csv("hyperopt.csv", index=False)
    model, score, took = boost(*data, **study.best_params)
    model.save_model("best.txt")
    final = xgb.train({"nthread": 1, "seed": 3}, xgb.DMatrix(a, ya), 10)
    final.save_model("best.ubj")
    final.save_model("best.json")
    np.save("predictions.npy", final.predict(xgb.DMatrix(b)))
    print(f"final rmse={score:.4f} in {took * 1000:.1f}ms")


if __name__ == "__main__":
    main()
