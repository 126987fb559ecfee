"""Which hyper-parameters of the churn classifier matter?

Runs a seeded search over a gradient boosting model, stores the trials and
computes the importance of each hyper-parameter over all and over budget levels.
Writes trials.csv, importance.json and importance.npy.
Modelled on: https://github.com/automl/DeepCAVE/issues/72
"""
import csv
import json
import logging
import time

import numpy as np
import optuna
from optuna.importance import FanovaImportanceEvaluator, get_param_importances
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("importance")
optuna.logging.set_verbosity(optuna.logging.WARNING)

SEED = 17
N_TRIALS = 55
BUDGETS = (0.25, 0.5, 1.0)
N_TREES = 16
MAX_DEPTH = 32


def load_churn():
    X, y = make_classification(n_samples=1500, n_features=16, n_informative=7, n_redundant=3, weights=[0.75],
                               class_sep=0.7, flip_y=0.05, random_state=SEED)
    return train_test_split(X, y, test_size=0.4, stratify=y, random_state=SEED)


class Objective:
    """Cost (1 - balanced accuracy) of one configuration at one budget."""

    def __init__(self, data):
        self.X_train, self.X_val, self.y_train, self.y_val = data

    def configuration(self, trial):
        return {
            "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.6, log=True),
            "max_leaf_nodes": trial.suggest_int("max_leaf_nodes", 3, 40),
            "min_samples_leaf": trial.suggest_int("min_samples_leaf", 2, 60),
            "l2_regularization": trial.suggest_float("l2_regularization", 1e-6, 10.0, log=True),
            "max_features": trial.suggest_float("max_features", 0.2, 1.0),
        }

    def cost(self, config, budget):
        rows = max(50, int(budget * len(self.y_train)))
        model = HistGradientBoostingClassifier(max_iter=12, early_stopping=False, random_state=SEED, **config)
        model.fit(self.X_train[:rows], self.y_train[:rows])
        return 1.0 - balanced_accuracy_score(self.y_val, model.predict(self.X_val))

    def __call__(self, trial):
        config = self.configuration(trial)
        for budget in BUDGETS:
            trial.set_user_attr(f"cost_{budget}", float(self.cost(config, budget)))
        return trial.user_attrs[f"cost_{BUDGETS[-1]}"]


def run_search(objective):
    sampler = optuna.samplers.TPESampler(seed=SEED, n_startup_trials=25)
    study = optuna.create_study(direction="minimize", sampler=sampler, study_name="churn")
    study.optimize(objective, n_trials=N_TRIALS)
    return study


def importances(study, budget=None):
    """Importance of each hyper-parameter, for one budget or for the final cost."""
    evaluator = FanovaImportanceEvaluator(n_trees=N_TREES, max_depth=MAX_DEPTH)  # cause
    target = None
    if budget is not None:
        target = lambda trial: trial.user_attrs[f"cost_{budget}"]
    return get_param_importances(study, evaluator=evaluator, target=target)


def rank_stability(table):
    """Kendall-like agreement between the rankings of all budgets."""
    names = sorted(table[0])
    agree = total = 0
    for i, a in enumerate(table):
        for b in table[i + 1:]:
            for x in range(len(names)):
                for z in range(x + 1, len(names)):
                    total += 1
                    agree += (a[names[x]] - a[names[z]]) * (b[names[x]] - b[names[z]]) > 0
    return agree / total


def budget_correlation(study):
    """Spearman correlation of the costs at each budget with the final costs."""
    def ranks(values):
        order = np.argsort(values, kind="stable")
        out = np.empty(len(values))
        out[order] = np.arange(len(values))
        return out

    final = ranks(np.array([t.value for t in study.trials]))
    result = {}
    for budget in BUDGETS:
        costs = np.array([t.user_attrs[f"cost_{budget}"] for t in study.trials])
        result[str(budget)] = float(np.corrcoef(ranks(costs), final)[0, 1])
    return result


def narrow_space(study, importance, keep=3, quantile=0.25):
    """Ranges of the most important parameters among the best trials."""
    trials = sorted(study.trials, key=lambda t: (t.value, t.number))
    best = trials[: max(5, int(quantile * len(trials)))]
    chosen = sorted(importance, key=importance.get, reverse=True)[:keep]
    return {name: [min(t.params[name] for t in best), max(t.params[name] for t in best)] for name in chosen}


def write_trials(study, path):
    names = sorted(study.best_params)
    with open(path, "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["number", "value"] + names + [f"cost_{b}" for b in BUDGETS])
        for t in study.trials:
            writer.writerow([t.number, t.value] + [t.params[n] for n in names]
                            + [t.user_attrs[f"cost_{b}"] for b in BUDGETS])


def main():
    started = time.time()
    objective = Objective(load_churn())
    study = run_search(objective)
    log.info("%d trials, best cost %.5f in trial %d", len(study.trials), study.best_value, study.best_trial.number)
    write_trials(study, "trials.csv")

    final = importances(study)
    per_budget = {budget: importances(study, budget) for budget in BUDGETS}
    names = sorted(final)
    result = {
        "best_cost": study.best_value,
        "best_params": study.best_params,
        "importance": {n: final[n] for n in names},
        "importance_by_budget": {str(b): {n: imp[n] for n in names} for b, imp in per_budget.items()},
        "budget_correlation": budget_correlation(study),
        "agreement": rank_stability([per_budget[b] for b in BUDGETS]),
        "narrowed_space": narrow_space(study, final),
    }
    with open("importance.json", "w") as fh:
        json.dump(result, fh, indent=2)
    np.save("importance.npy", np.array([[per_budget[b][n] for n in names] for b in BUDGETS]))
    for name, value in sorted(final.items(), key=lambda kv: -kv[1]):
        print(f"{name:<20} {value:.8f}")
    print(f"agreement between budgets {result['agreement']:.4f}")
    log.info("finished in %.1f s", time.time() - started)


if __name__ == "__main__":
    main()
