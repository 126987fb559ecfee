"""https://github.com/optuna/optuna/issues/3893 : HyperbandPruner assigns trials to brackets by a hash of study name and number;
without study_name the name is a random uuid, so pruning and results differ although the sampler is seeded."""
import json
import logging
import time

import numpy as np
import optuna
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

SEED = 1
MAX_EPOCHS = 27

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s", filename="search.log")


def load():
    x, y = make_classification(n_samples=1200, n_features=20, n_informative=6, n_redundant=4, flip_y=0.1, random_state=SEED)
    x_tr, x_te, y_tr, y_te = train_test_split(x, y, test_size=0.3, random_state=SEED, stratify=y)
    scaler = StandardScaler().fit(x_tr)
    return scaler.transform(x_tr), scaler.transform(x_te), y_tr, y_te


class Objective:
    def __init__(self, data):
        self.x_tr, self.x_va, self.y_tr, self.y_va = data
        self.epochs_run = 0

    def suggest(self, trial):
        return {
            "alpha": trial.suggest_float("alpha", 1e-6, 1e-1, log=True),
            "eta0": trial.suggest_float("eta0", 1e-3, 1.0, log=True),
            "penalty": trial.suggest_categorical("penalty", ["l1", "l2", "elasticnet"]),
            "power_t": trial.suggest_float("power_t", 0.1, 0.6),
        }

    def __call__(self, trial):
        p = self.suggest(trial)
        clf = SGDClassifier(loss="log_loss", learning_rate="invscaling", random_state=SEED, **p)
        rs = np.random.RandomState(SEED)
        for epoch in range(MAX_EPOCHS):
            order = rs.permutation(len(self.x_tr))
            clf.partial_fit(self.x_tr[order], self.y_tr[order], classes=[0, 1])
            self.epochs_run += 1
            loss = log_loss(self.y_va, clf.predict_proba(self.x_va), labels=[0, 1])
            trial.report(loss, epoch + 1)
            if trial.should_prune():
                raise optuna.TrialPruned()
        return loss


def run_study(objective, n_trials):
    sampler = optuna.samplers.TPESampler(seed=SEED, n_startup_trials=8)
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=MAX_EPOCHS, reduction_factor=3)
    study = optuna.create_study(direction="minimize", sampler=sampler, pruner=pruner)  # cause
    study.optimize(objective, n_trials=n_trials)
    return study


def export(study, objective):
    rows = []
    for t in study.trials:
        rows.append({"number": t.number, "state": t.state.name, "value": t.value, "params": t.params, "steps": len(t.intermediate_values)})
    with open("trials.json", "w") as f:
        json.dump({"best": study.best_params, "best_value": study.best_value, "epochs": objective.epochs_run, "trials": rows}, f, indent=1)


def main():
    np.random.seed(SEED)
    t0 = time.time()
    objective = Objective(load())
    study = run_study(objective, 40)
    export(study, objective)
    pruned = sum(t.state == optuna.trial.TrialState.PRUNED for t in study.trials)
    print("best %.6f with %s" % (study.best_value, study.best_params))
    print("pruned %d of %d, epochs %d, %.1f s" % (pruned, len(study.trials), objective.epochs_run, time.time() - t0))


if __name__ == "__main__":
    main()
