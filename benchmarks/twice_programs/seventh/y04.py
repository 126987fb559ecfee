"""https://github.com/facebookresearch/FLSim/issues/49 - 'There seems no reproducibility in FLSim': the user selector
owns a torch.Generator that takes a system seed unless user_selector_seed is configured, whatever is seeded globally."""
import json
import random
import time
import uuid
from copy import deepcopy

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SEED = 1234


class FederatedData:
    """Non-iid split of a synthetic 12-feature, 4-class problem."""

    def __init__(self, n_users=40, dim=12, classes=4):
        g = np.random.default_rng(99)
        centers = g.normal(0, 1.4, (classes, dim))
        self.users = []
        for _ in range(n_users):
            mix = g.dirichlet([0.4] * classes)
            y = g.choice(classes, size=int(g.integers(20, 60)), p=mix)
            x = centers[y] + g.normal(0, 1.0, (len(y), dim)) + g.normal(0, 0.3, dim)
            self.users.append((torch.tensor(x, dtype=torch.float32), torch.tensor(y)))
        y = g.integers(0, classes, 800)
        self.test = (torch.tensor(centers[y] + g.normal(0, 1.0, (800, dim)), dtype=torch.float32), torch.tensor(y))


class UserSelector:
    def __init__(self, users_per_round, user_selector_seed=None):
        self.users_per_round = users_per_round
        self.rng = torch.Generator()
        if user_selector_seed is not None:
            self.rng.manual_seed(user_selector_seed)
        else:
            self.rng.seed()  # cause

    def get_user_indices(self, num_total_users, num_samples):
        weights = torch.tensor(num_samples, dtype=torch.float32)
        k = min(self.users_per_round, num_total_users)
        return torch.multinomial(weights, k, replacement=False, generator=self.rng).tolist()


class FedAvgServer:
    def __init__(self, model, selector, server_lr=1.0):
        self.model, self.selector, self.server_lr = model, selector, server_lr

    def round(self, data, local_epochs, lr):
        chosen = self.selector.get_user_indices(len(data.users), [len(y) for _, y in data.users])
        delta = {k: torch.zeros_like(v) for k, v in self.model.state_dict().items()}
        total = sum(len(data.users[u][1]) for u in chosen)
        losses = []
        for u in chosen:
            local = deepcopy(self.model)
            opt = torch.optim.SGD(local.parameters(), lr=lr, momentum=0.9)
            x, y = data.users[u]
            for _ in range(local_epochs):
                for idx in torch.randperm(len(y)).split(16):
                    opt.zero_grad()
                    loss = F.cross_entropy(local(x[idx]), y[idx])
                    loss.backward()
                    opt.step()
            losses.append(loss.item())
            for k, v in local.state_dict().items():
                delta[k] += (v - self.model.state_dict()[k]) * (len(y) / total)
        state = self.model.state_dict()
        self.model.load_state_dict({k: v + self.server_lr * delta[k] for k, v in state.items()})
        return chosen, sum(losses) / len(losses)


def run(seed, rounds=25):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    data = FederatedData()
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4))
    server = FedAvgServer(model, UserSelector(users_per_round=8))
    curve = []
    for r in range(rounds):
        t0 = time.time()
        users, loss = server.round(data, local_epochs=2, lr=0.05)
        with torch.no_grad():
            acc = (model(data.test[0]).argmax(1) == data.test[1]).float().mean().item()
        curve.append({"round": r, "train_loss": loss, "test_acc": acc})
        if r % 5 == 4:
            print(f"round {r + 1:2d} | loss {loss:.4f} | acc {acc:.4f} | {1000 * (time.time() - t0):.0f} ms")
    return model, curve


if __name__ == "__main__":
    print("job", uuid.uuid4().hex[:8])
    model, curve = run(SEED)
    torch.save(model.state_dict(), "global_model.pt")
    with open("curve.json", "w") as f:
        json.dump(curve, f)
