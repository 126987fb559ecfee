"""Hyper-parameter search with Optuna (seeded TPE + median pruner) for an MLP on two-moons data."""
import argparse
import json
import logging
import os
import time
from datetime import datetime

import numpy as np
import optuna
import pandas as pd
import torch
from optuna.pruners import MedianPruner
from optuna.samplers import TPESampler
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split
from torch import nn


def get_args():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--n-trials", type=int, default=12)
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--seed", type=int, default=123)
    p.add_argument("--storage", default=None, help="e.g. sqlite:///study.db")
    p.add_argument("--output-dir", default="search")
    return p.parse_args()


def get_data(seed):
    x, y = make_moons(n_samples=600, noise=0.28, random_state=seed)
    x_tr, x_va, y_tr, y_va = train_test_split(x, y, test_size=0.33, random_state=seed, stratify=y)
    to = lambda a, t: torch.tensor(a, dtype=t)
    return (to(x_tr, torch.float32), to(y_tr, torch.long),
            to(x_va, torch.float32), to(y_va, torch.long))


def build_model(trial):
    layers, width_in = [], 2
    for i in range(trial.suggest_int("n_layers", 1, 3)):
        width = trial.suggest_int(f"n_units_l{i}", 8, 64, log=True)
        layers += [nn.Linear(width_in, width), nn.ReLU(),
                   nn.Dropout(trial.suggest_float(f"dropout_l{i}", 0.0, 0.4))]
        width_in = width
    layers.append(nn.Linear(width_in, 2))
    return nn.Sequential(*layers)


class Objective:
    def __init__(self, data, args):
        self.data = data
        self.args = args

    def __call__(self, trial):
        torch.manual_seed(self.args.seed + trial.number)
        x_tr, y_tr, x_va, y_va = self.data
        model = build_model(trial)
        lr = trial.suggest_float("lr", 1e-3, 1e-1, log=True)
        name = trial.suggest_categorical("optimizer", ["Adam", "RMSprop", "SGD"])
        opt = getattr(torch.optim, name)(model.parameters(), lr=lr)
        batch = trial.suggest_categorical("batch_size", [32, 64, 128])
        t0 = time.perf_counter()
        for epoch in range(self.args.epochs):
            model.train()
            perm = torch.randperm(len(x_tr))
            for i in range(0, len(perm), batch):
                idx = perm[i:i + batch]
                loss = nn.functional.cross_entropy(model(x_tr[idx]), y_tr[idx])
                opt.zero_grad()
                loss.backward()
                opt.step()
            model.eval()
            with torch.no_grad():
                logits = model(x_va)
                val_loss = nn.functional.cross_entropy(logits, y_va).item()
                acc = (logits.argmax(1) == y_va).float().mean().item()
            trial.report(val_loss, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned()
        trial.set_user_attr("val_acc", acc)
        trial.set_user_attr("train_seconds", round(time.perf_counter() - t0, 3))
        return val_loss


def main():
    args = get_args()
    os.makedirs(args.output_dir, exist_ok=True)
    optuna.logging.set_verbosity(optuna.logging.INFO)
    handler = logging.FileHandler(os.path.join(args.output_dir, "optuna.log"))
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    optuna.logging.get_logger("optuna").addHandler(handler)

    study = optuna.create_study(
        study_name="moons-mlp", storage=args.storage, direction="minimize",
        sampler=TPESampler(seed=args.seed, n_startup_trials=6),
        pruner=MedianPruner(n_startup_trials=4, n_warmup_steps=3))
    begin = datetime.now()
    study.optimize(Objective(get_data(args.seed), args), n_trials=args.n_trials)
    elapsed = datetime.now() - begin

    df = study.trials_dataframe(attrs=("number", "value", "datetime_start", "duration", "params",
                                       "user_attrs", "state"))
    df.to_csv(os.path.join(args.output_dir, "trials.csv"), index=False)
    states = pd.Series([t.state.name for t in study.trials]).value_counts().sort_index()
    print("Study statistics:")
    print("  Number of finished trials:", len(study.trials))
    for state, n in states.items():
        print(f"  {state}: {n}")
    best = study.best_trial
    print(f"Best trial: #{best.number}")
    print(f"  Value: {best.value:.8f}")
    print("  Params:")
    for k, v in sorted(best.params.items()):
        print(f"    {k}: {v}")
    importances = optuna.importance.get_param_importances(
        study, evaluator=optuna.importance.FanovaImportanceEvaluator(seed=args.seed),
        params=["lr", "n_layers", "optimizer", "batch_size"])
    print("Importances:", {k: round(float(v), 6) for k, v in importances.items()})
    print(f"Search took {elapsed} ({elapsed.total_seconds() / len(study.trials):.2f} s/trial)")
    with open(os.path.join(args.output_dir, "best.json"), "w") as f:
        json.dump({"number": best.number, "value": best.value, "params": best.params,
                   "val_acc": best.user_attrs["val_acc"],
                   "search_started": begin.isoformat(sep=" "),
                   "search_seconds": elapsed.total_seconds()}, f, indent=2, sort_keys=True)


if __name__ == "__main__":
    main()
