"""https://github.com/VectorInstitute/FL4Health/pull/278 - clients are ordered by an identifier made with uuid4, so who is sampled and the order in which client weights are summed differ although everything is seeded."""
import json
import os
import random
import time
import uuid
from collections import OrderedDict

import numpy as np
import torch
from torch import nn

SEED = 278
ROUNDS = 12


def partition(n_clients=10, n=120, dim=10, seed=SEED):
    """Non-identical clients: each has its own shift of the inputs and share of classes."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(dim, 3))
    sets = []
    for _ in range(n_clients):
        shift = rng.normal(0, 0.8, dim)
        x = rng.normal(size=(n, dim)) + shift
        y = np.argmax(x @ w + rng.gumbel(size=(n, 3)), axis=1)
        sets.append((torch.tensor(x, dtype=torch.float32), torch.tensor(y)))
    return sets


def build_model():
    return nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 3))


class Client:
    def __init__(self, data, lr=0.1):
        self.cid = uuid.uuid4().hex  # cause
        self.x, self.y = data
        self.lr = lr
        self.seconds = 0.0

    def fit(self, weights, round_no):
        t0 = time.perf_counter()
        model = build_model()
        model.load_state_dict(weights)
        opt = torch.optim.SGD(model.parameters(), lr=self.lr)
        gen = torch.Generator().manual_seed(round_no)
        for _ in range(3):
            perm = torch.randperm(len(self.x), generator=gen)
            for i in range(0, len(perm), 30):
                idx = perm[i:i + 30]
                loss = nn.functional.cross_entropy(model(self.x[idx]), self.y[idx])
                opt.zero_grad()
                loss.backward()
                opt.step()
        self.seconds += time.perf_counter() - t0
        return model.state_dict(), len(self.x)

    @torch.no_grad()
    def evaluate(self, weights):
        model = build_model()
        model.load_state_dict(weights)
        out = model(self.x)
        return nn.functional.cross_entropy(out, self.y).item(), (out.argmax(1) == self.y).sum().item()


class ClientManager:
    def __init__(self):
        self.clients = {}

    def register(self, client):
        self.clients[client.cid] = client

    def sample(self, k):
        available = sorted(self.clients)
        return [self.clients[c] for c in random.sample(available, k)]

    def everyone(self):
        return list(self.clients.values())


class FedAvgServer:
    def __init__(self, manager):
        self.manager = manager
        self.weights = build_model().state_dict()

    def aggregate(self, results):
        total = sum(n for _, n in results)
        merged = OrderedDict()
        for key in self.weights:
            acc = torch.zeros_like(self.weights[key])
            for state, n in results:
                acc += state[key] * (n / total)
            merged[key] = acc
        self.weights = merged

    def run(self, rounds, per_round):
        history = []
        for r in range(1, rounds + 1):
            chosen = self.manager.sample(per_round)
            results = [c.fit(self.weights, r) for c in chosen]
            self.aggregate(results)
            scores = [c.evaluate(self.weights) for c in self.manager.everyone()]
            loss = float(np.mean([s[0] for s in scores]))
            acc = sum(s[1] for s in scores) / sum(len(c.x) for c in self.manager.everyone())
            history.append({"round": r, "loss": loss, "accuracy": acc})
            print(f"round {r:2d} loss {loss:.6f} accuracy {acc:.4f} clients {[c.cid[:4] for c in chosen]}")
        return history


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    t0 = time.time()
    print("server process", os.getpid(), "started", time.ctime())
    manager = ClientManager()
    for data in partition():
        manager.register(Client(data))
    history = FedAvgServer(manager).run(ROUNDS, per_round=6)
    print(f"{ROUNDS} rounds in {time.time() - t0:.1f}s")
    with open("federated.json", "w") as f:
        json.dump({"history": history, "elapsed": time.time() - t0}, f, indent=1)


if __name__ == "__main__":
    main()
