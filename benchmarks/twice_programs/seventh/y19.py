"""https://github.com/dftd3/tad-dftd3/pull/55 (review) - a chunk size computed from the memory that is free at the moment
makes results depend on what other processes take; here every chunk gives one optimizer step."""
import json
import logging
import math
import time

import psutil
import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(asctime)s [%(process)d] %(message)s")
log = logging.getLogger("pairs")


class MemoryPolicy:
    """How many pairs fit in a small share of the memory."""

    share = 2e-5
    bytes_per_pair = 4 * 96

    @classmethod
    def chunk(cls, n_pairs):
        free = psutil.virtual_memory().available  # cause
        return max(64, min(n_pairs, int(free * cls.share / cls.bytes_per_pair)))


def molecules(n, atoms, seed):
    g = torch.Generator().manual_seed(seed)
    pos = torch.rand(n, atoms, 3, generator=g) * 4
    kind = torch.randint(0, 4, (n, atoms), generator=g)
    return pos, kind


def reference_energy(pos, kind):
    d = torch.cdist(pos, pos) + 10 * torch.eye(pos.shape[1])
    c6 = (kind + 1).float()
    pair = c6.unsqueeze(2) * c6.unsqueeze(1)
    return -(pair / (d ** 6 + 4.0)).sum((1, 2)) / 2


class PairNet(nn.Module):
    def __init__(self, kinds=4, dim=12):
        super().__init__()
        self.kind = nn.Embedding(kinds, dim)
        self.net = nn.Sequential(nn.Linear(dim + 8, 48), nn.SiLU(), nn.Linear(48, 1))
        self.register_buffer("centers", torch.linspace(0, 4, 8))

    def forward(self, dist, a, b):
        radial = torch.exp(-4 * (dist.unsqueeze(-1) - self.centers) ** 2)
        return self.net(torch.cat([radial, self.kind(a) * self.kind(b)], -1)).squeeze(-1)


def pair_list(pos, kind):
    n, atoms, _ = pos.shape
    i, j = torch.triu_indices(atoms, atoms, 1)
    dist = (pos[:, i] - pos[:, j]).norm(dim=-1).reshape(-1)
    a, b = kind[:, i].reshape(-1), kind[:, j].reshape(-1)
    target = -((a + 1) * (b + 1)).float() / (dist ** 6 + 4.0)
    return dist, a, b, target


def main():
    torch.manual_seed(7)
    torch.use_deterministic_algorithms(True)
    pos, kind = molecules(240, 9, seed=1)
    test_pos, test_kind = molecules(60, 9, seed=2)
    dist, a, b, target = pair_list(pos, kind)
    model = PairNet()
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    curve = []
    for epoch in range(12):
        t0 = time.time()
        order = torch.randperm(len(dist))
        size = MemoryPolicy.chunk(len(dist))
        total = 0.0
        for idx in order.split(size):
            loss = (model(dist[idx], a[idx], b[idx]) - target[idx]).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        curve.append(math.sqrt(total / len(dist)))
        log.info("epoch %d rmse %.5f, chunks of %d, %.2fs", epoch, curve[-1], size, time.time() - t0)
    d, ta, tb, _ = pair_list(test_pos, test_kind)
    with torch.no_grad():
        energy = model(d, ta, tb).reshape(60, -1).sum(1)
    error = (energy - reference_energy(test_pos, test_kind)).abs().mean().item()
    log.info("mean error of the energy %.5f", error)
    with open("energy.json", "w") as f:
        json.dump({"rmse": curve, "test_error": error}, f)


if __name__ == "__main__":
    main()
