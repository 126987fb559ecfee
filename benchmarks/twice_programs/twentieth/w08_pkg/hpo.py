"""Hyper-parameter optimisation with Optuna."""
import csv

import optuna
from optuna.pruners import MedianPruner
from optuna.samplers import TPESampler

from .evaluation import rank_based
from .training import train_model

optuna.logging.set_verbosity(optuna.logging.WARNING)


class HpoPipeline:
    """Runs a study; every trial trains with the same fixed random seed."""

    def __init__(self, triples, model, metric, n_trials, random_seed):
        self.triples = triples
        self.model = model
        self.metric = metric
        self.n_trials = n_trials
        self.random_seed = random_seed
        self.study = None

    def objective(self, trial):
        params = {
            "dim": trial.suggest_int("dim", 8, 40, step=4),
            "lr": trial.suggest_float("lr", 0.02, 0.5, log=True),
            "margin": trial.suggest_float("margin", 0.3, 4.0),
            "num_negs": trial.suggest_int("num_negs", 1, 5),
        }
        net = train_model(self.triples, self.model, random_seed=self.random_seed, epochs=10, **params)
        metrics = rank_based(net, self.triples.validation, self.triples.known)
        trial.set_user_attr("random_seed", self.random_seed)
        for key, value in metrics.items():
            trial.set_user_attr(key, value)
        return metrics[self.metric]

    def optimize(self):
        sampler = TPESampler(n_startup_trials=6)  # cause
        self.study = optuna.create_study(direction="maximize", sampler=sampler,
                                         pruner=MedianPruner(n_startup_trials=4))
        self.study.optimize(self.objective, n_trials=self.n_trials)
        return self.study

    def best(self):
        trial = self.study.best_trial
        return {"number": trial.number, "value": trial.value, "params": dict(trial.params)}

    def to_csv(self, path):
        with open(path, "w", newline="") as fh:
            out = csv.writer(fh)
            out.writerow(["number", "state", "mrr", "mean_rank", "hits_at_10", "dim", "lr",
                          "margin", "num_negs"])
            for trial in self.study.trials:
                out.writerow([trial.number, trial.state.name,
                              *[trial.user_attrs[k] for k in ("mrr", "mean_rank", "hits_at_10")],
                              *[trial.params[k] for k in ("dim", "lr", "margin", "num_negs")]])
