"""https://github.com/optuna/optuna/issues/4412 - the sampler is seeded, but optimize() runs with n_jobs=2, where optuna re-seeds the sampler and trials are suggested and reported in the order in which threads come."""
import json
import logging
import os
import random
import socket
import time

import numpy as np
import optuna
import torch
from torch import nn

SEED = 7
optuna.logging.set_verbosity(optuna.logging.WARNING)
log = logging.getLogger("search")
logging.basicConfig(format="%(asctime)s %(process)d %(message)s", level=logging.INFO)


def make_data():
    rng = np.random.RandomState(SEED)
    x = rng.uniform(-2, 2, size=(320, 3)).astype(np.float32)
    y = np.sin(2 * x[:, :1]) + 0.5 * x[:, 1:2] * x[:, 2:] + 0.1 * rng.randn(320, 1)
    x, y = torch.from_numpy(x), torch.from_numpy(y.astype(np.float32))
    return (x[:240], y[:240]), (x[240:], y[240:])


class Regressor:
    """A two-layer net whose initial weights depend only on the trial's settings."""

    def __init__(self, width, lr, momentum):
        gen = torch.Generator().manual_seed(SEED)
        self.w1 = (torch.randn(3, width, generator=gen) * 0.6).requires_grad_()
        self.b1 = torch.zeros(width, requires_grad=True)
        self.w2 = (torch.randn(width, 1, generator=gen) * 0.3).requires_grad_()
        self.gen = gen
        self.opt = torch.optim.SGD([self.w1, self.b1, self.w2], lr=lr, momentum=momentum)

    def __call__(self, x):
        return torch.tanh(x @ self.w1 + self.b1) @ self.w2

    def fit(self, x, y, epochs, batch=32):
        for _ in range(epochs):
            order = torch.randperm(len(x), generator=self.gen)
            for i in range(0, len(x), batch):
                idx = order[i:i + batch]
                loss = nn.functional.mse_loss(self(x[idx]), y[idx])
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
        return self

    @torch.no_grad()
    def score(self, x, y):
        return nn.functional.mse_loss(self(x), y).item()


class Objective:
    def __init__(self, train, valid):
        self.train, self.valid = train, valid

    def __call__(self, trial):
        width = trial.suggest_int("width", 4, 48)
        lr = trial.suggest_float("lr", 1e-3, 2e-1, log=True)
        momentum = trial.suggest_float("momentum", 0.0, 0.95)
        epochs = trial.suggest_int("epochs", 3, 12)
        t0 = time.time()
        value = Regressor(width, lr, momentum).fit(*self.train, epochs).score(*self.valid)
        trial.set_user_attr("fit_seconds", time.time() - t0)
        return value if np.isfinite(value) else 1e3


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    log.info("search on %s", socket.gethostname())
    train, valid = make_data()
    study = optuna.create_study(direction="minimize", sampler=optuna.samplers.TPESampler(seed=SEED, n_startup_trials=6))
    t0 = time.time()
    study.optimize(Objective(train, valid), n_trials=24, n_jobs=2)  # cause
    log.info("24 trials in %.1fs", time.time() - t0)

    best = study.best_params
    final = Regressor(best["width"], best["lr"], best["momentum"]).fit(*train, best["epochs"] * 2)
    mse = final.score(*valid)
    log.info("best %s -> final mse %.6f", best, mse)
    with open("best_params.json", "w") as f:
        json.dump({"params": best, "search_value": study.best_value, "final_mse": mse, "pid": os.getpid()}, f, indent=1)


if __name__ == "__main__":
    main()
