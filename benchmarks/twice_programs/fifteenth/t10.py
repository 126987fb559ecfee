#!/usr/bin/env python
"""Hyperparameter search for a small actor network.

Modelled on https://github.com/optuna/optuna/issues/3045

Imitates an expert controller of a pendulum with networks of different shapes and
learning rates, searched with a TPE sampler and a pruner.  Writes all the trials,
the best parameters and the evaluation of the best network.
"""
import argparse
import json
import logging
import random
import time
from pathlib import Path

import numpy as np
import optuna
import torch
from torch import nn

log = logging.getLogger("tune")


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)


class PendulumExpert:
    """Energy-shaping controller used to make the training set."""

    def __init__(self, seed, n):
        gen = torch.Generator().manual_seed(seed)
        theta = (torch.rand(n, generator=gen) * 2 - 1) * np.pi
        omega = (torch.rand(n, generator=gen) * 2 - 1) * 8.0
        self.obs = torch.stack([theta.cos(), theta.sin(), omega / 8.0], dim=1)
        energy = 0.5 * omega ** 2 + 9.8 * theta.cos()
        swing = 0.12 * (9.8 - energy) * torch.sign(omega * theta.cos())
        hold = -3.0 * theta - 0.8 * omega
        near = (theta.abs() < 0.35).float()
        action = near * hold + (1 - near) * swing
        self.action = torch.tanh(action / 2.0).unsqueeze(1)

    def split(self, fraction=0.75):
        k = int(len(self.obs) * fraction)
        return (self.obs[:k], self.action[:k]), (self.obs[k:], self.action[k:])


class Linear(nn.Module):
    """Linear layer initialised from a generator of its own."""

    def __init__(self, n_in, n_out, gen):
        super().__init__()
        bound = (6.0 / (n_in + n_out)) ** 0.5
        self.weight = nn.Parameter((torch.rand(n_out, n_in, generator=gen) * 2 - 1) * bound)
        self.bias = nn.Parameter(torch.zeros(n_out))

    def forward(self, x):
        return x @ self.weight.T + self.bias


def build_actor(width, depth, activation, gen):
    act = {"tanh": nn.Tanh, "relu": nn.ReLU, "silu": nn.SiLU}[activation]
    layers, n_in = [], 3
    for _ in range(depth):
        layers += [Linear(n_in, width, gen), act()]
        n_in = width
    return nn.Sequential(*layers, Linear(n_in, 1, gen), nn.Tanh())


class Objective:
    def __init__(self, train, valid, epochs, seed):
        self.train, self.valid, self.epochs, self.seed = train, valid, epochs, seed

    def params(self, trial):
        return {
            "width": trial.suggest_int("width", 8, 64, log=True),
            "depth": trial.suggest_int("depth", 1, 3),
            "activation": trial.suggest_categorical("activation", ["tanh", "relu", "silu"]),
            "lr": trial.suggest_float("lr", 1e-4, 3e-2, log=True),
            "batch_size": trial.suggest_categorical("batch_size", [32, 64, 128]),
            "weight_decay": trial.suggest_float("weight_decay", 1e-7, 1e-3, log=True),
        }

    def fit(self, params, report=None):
        gen = torch.Generator().manual_seed(self.seed)
        model = build_actor(params["width"], params["depth"], params["activation"], gen)
        opt = torch.optim.Adam(model.parameters(), lr=params["lr"], weight_decay=params["weight_decay"])
        x, y = self.train
        score = float("inf")
        for epoch in range(self.epochs):
            for idx in torch.randperm(len(x), generator=gen).split(params["batch_size"]):
                loss = nn.functional.mse_loss(model(x[idx]), y[idx])
                opt.zero_grad()
                loss.backward()
                opt.step()
            with torch.no_grad():
                score = float(nn.functional.mse_loss(model(self.valid[0]), self.valid[1]))
            if report is not None:
                report(score, epoch)
        return model, score

    def __call__(self, trial):
        def report(value, step):
            trial.report(value, step)
            if trial.should_prune():
                raise optuna.TrialPruned()

        return self.fit(self.params(trial), report)[1]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--trials", type=int, default=16)
    ap.add_argument("--jobs", type=int, default=2)
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--samples", type=int, default=1600)
    ap.add_argument("--seed", type=int, default=3045)
    ap.add_argument("--out", type=Path, default=Path("tuning"))
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    set_seed(args.seed)
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)

    train, valid = PendulumExpert(args.seed, args.samples).split()
    objective = Objective(train, valid, args.epochs, args.seed)
    study = optuna.create_study(
        study_name=f"actor-{time.strftime('%Y%m%d-%H%M%S')}",
        direction="minimize",
        sampler=optuna.samplers.TPESampler(seed=args.seed, n_startup_trials=5),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=2),
    )
    t0 = time.time()
    study.optimize(objective, n_trials=args.trials, n_jobs=args.jobs)  # cause
    log.info("study %s: %d trials in %.1fs", study.study_name, len(study.trials), time.time() - t0)

    with open(args.out / "trials.jsonl", "w") as fh:
        for t in study.trials:
            fh.write(json.dumps({"number": t.number, "state": t.state.name, "value": t.value,
                                 "params": t.params}, sort_keys=True) + "\n")
    model, score = objective.fit(study.best_params)
    (args.out / "best.json").write_text(json.dumps({"params": study.best_params, "score": score}, indent=2))
    torch.save(model.state_dict(), args.out / "actor.pt")
    print("best value", round(study.best_value, 7))
    print("best params", json.dumps(study.best_params, sort_keys=True))


if __name__ == "__main__":
    main()
