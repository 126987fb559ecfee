"""Federated averaging over non-identically distributed clients.

Modelled on https://github.com/kitsuyaazuma/blazefl/pull/70
Trains a small network by federated averaging with several clients per round.
"""
import argparse
import json
import logging
import os
import random
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn

from s19_fl import ClientTrainer, FedAvgServer, partition_dirichlet, synthetic_digits

log = logging.getLogger("federated")


@dataclass
class FederatedConfig:
    seed: int = 42
    clients: int = 20
    fraction: float = 0.3
    rounds: int = 8
    samples: int = 2400
    alpha: float = 0.5
    hidden: int = 48
    threads: int = 3
    out: str = "federated"


def seed_everything(seed):
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False


class Net(nn.Module):
    def __init__(self, hidden, features=64, classes=5):
        super().__init__()
        self.fc1 = nn.Linear(features, hidden)
        self.fc2 = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


class Experiment:
    def __init__(self, cfg):
        self.cfg = cfg
        self.train = synthetic_digits(cfg.samples, seed=10)
        self.test = synthetic_digits(800, seed=11)
        parts = partition_dirichlet(self.train, cfg.clients, cfg.alpha, seed=cfg.seed)
        parts = [p if len(p) >= 2 else list(range(4)) for p in parts]
        self.trainer = ClientTrainer(self.train, parts, threads=cfg.threads)
        self.server = FedAvgServer(Net(cfg.hidden), cfg.clients, cfg.fraction)
        self.history = []

    def round(self, number):
        clients = self.server.sample_clients()
        updates = self.trainer.local_process(clients, self.server.model)
        self.server.aggregate(updates)
        acc, loss = self.server.evaluate(self.test)
        self.history.append({"round": number, "accuracy": acc, "loss": loss,
                             "clients": " ".join(map(str, clients)),
                             "local_loss": sum(u[2] for u in updates)})
        return acc, loss

    def run(self):
        for number in range(self.cfg.rounds):
            t0 = time.perf_counter()
            acc, loss = self.round(number)
            log.info("round %d accuracy %.4f loss %.5f (%.2f s)", number, acc, loss,
                     time.perf_counter() - t0)
        return pd.DataFrame(self.history)


def parse_args():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rounds", type=int, default=FederatedConfig.rounds)
    ap.add_argument("--seed", type=int, default=FederatedConfig.seed)
    ap.add_argument("--threads", type=int, default=FederatedConfig.threads)
    args = ap.parse_args()
    return FederatedConfig(rounds=args.rounds, seed=args.seed, threads=args.threads)


def save(experiment, table, cfg):
    out = Path(cfg.out)
    out.mkdir(exist_ok=True)
    table.to_csv(out / "history.csv", index=False, float_format="%.8f")
    torch.save(experiment.server.model.state_dict(), out / "global.pt")
    (out / "config.json").write_text(json.dumps(asdict(cfg), indent=1))


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    cfg = parse_args()
    torch.set_num_threads(1)
    seed_everything(cfg.seed)
    log.info("pid %d", os.getpid())
    experiment = Experiment(cfg)
    table = experiment.run()
    save(experiment, table, cfg)
    weights = torch.cat([p.flatten() for p in experiment.server.model.parameters()])
    print(table[["round", "accuracy", "loss"]].to_string(index=False))
    print(f"weight norm {float(weights.norm()):.7f}")


if __name__ == "__main__":
    main()
