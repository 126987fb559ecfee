"""Train a click model and report calibration metrics computed off the training thread.

Modelled on https://github.com/meta-pytorch/torchrec/pull/3974

The training loop accumulates metric states after every step; at a fixed interval
the states are handed to a compute thread that derives normalized entropy,
calibration, AUC and the expected calibration error. Writes metrics.csv and summary.json.
"""
import csv
import json
import logging
import math
import os
import queue
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Dict

import numpy as np
import torch
from torch import nn

SEED = 77
N_USERS, N_ITEMS, DIM = 400, 300, 12
BATCH, STEPS, INTERVAL = 256, 400, 10
BINS = 8192

log = logging.getLogger("click")


# ------------------------------------------------------------------------ data
class ClickStream:
    """Batches of (user, item, dense, click) from a fixed latent factor world."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.u = rng.normal(0, 1, size=(N_USERS, 6))
        self.v = rng.normal(0, 1, size=(N_ITEMS, 6))
        self.w = rng.normal(0, 0.7, size=8)
        self.rng = rng

    def batch(self, n):
        user = self.rng.integers(N_USERS, size=n)
        item = np.minimum(self.rng.geometric(0.01, size=n), N_ITEMS) - 1
        dense = self.rng.normal(size=(n, 8))
        score = 0.5 * (self.u[user] * self.v[item]).sum(1) + dense @ self.w - 1.2
        click = self.rng.random(n) < 1.0 / (1.0 + np.exp(-score))
        return (torch.from_numpy(user), torch.from_numpy(item),
                torch.from_numpy(dense.astype(np.float32)),
                torch.from_numpy(click.astype(np.float32)))


class ClickNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = nn.Embedding(N_USERS, DIM)
        self.item = nn.Embedding(N_ITEMS, DIM)
        self.bottom = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, DIM))
        self.top = nn.Sequential(nn.Linear(4 * DIM, 32), nn.ReLU(), nn.Linear(32, 1))
        for emb in (self.user, self.item):
            nn.init.normal_(emb.weight, std=0.05)

    def forward(self, user, item, dense):
        u, i, d = self.user(user), self.item(item), self.bottom(dense)
        return self.top(torch.cat([u, i, d, u * i], dim=1)).squeeze(1)


# --------------------------------------------------------------------- metrics
class MetricStates:
    """Running sums from which all reported metrics can be derived."""

    def __init__(self):
        z = lambda *shape: torch.zeros(*shape, dtype=torch.float64)
        self.buffers: Dict[str, torch.Tensor] = {
            "cross_entropy": z(1), "labels": z(1), "predictions": z(1), "examples": z(1),
            "positive_hist": z(BINS), "negative_hist": z(BINS), "prediction_hist": z(BINS),
        }

    @torch.no_grad()
    def update(self, logits, labels):
        prob = torch.sigmoid(logits).double()
        lab = labels.double()
        ce = nn.functional.binary_cross_entropy_with_logits(logits, labels, reduction="sum")
        bins = (prob * BINS).long().clamp_(max=BINS - 1)
        b = self.buffers
        b["cross_entropy"] += ce.double()
        b["labels"] += lab.sum()
        b["predictions"] += prob.sum()
        b["examples"] += float(len(lab))
        b["positive_hist"].index_add_(0, bins, lab)
        b["negative_hist"].index_add_(0, bins, 1.0 - lab)
        b["prediction_hist"].index_add_(0, bins, prob)


@dataclass
class Snapshot:
    step: int
    states: Dict[str, torch.Tensor] = field(default_factory=dict)

    @classmethod
    def from_states(cls, step, metric):
        states = {}
        for name, tensor in metric.buffers.items():
            states[name] = tensor.detach()  # cause
        return cls(step, states)


def auc_from_hist(pos, neg):
    area = below = 0.0
    for p, n in zip(pos.tolist(), neg.tolist()):
        area += p * (below + 0.5 * n)
        below += n
    total = pos.sum().item() * neg.sum().item()
    return area / total if total else 0.5


def refinement(pos, neg, width=64):
    """Entropy that remains when every group of bins predicts its own rate."""
    loss = examples = 0.0
    p_sum = n_sum = 0.0
    for k, (p, n) in enumerate(zip(pos.tolist(), neg.tolist()), 1):
        p_sum += p
        n_sum += n
        if k % width == 0:
            if p_sum and n_sum:
                both = p_sum + n_sum
                loss -= p_sum * math.log(p_sum / both) + n_sum * math.log(n_sum / both)
            examples += p_sum + n_sum
            p_sum = n_sum = 0.0
    return loss / examples


def calibration_error(snap, groups=32):
    pos = snap.states["positive_hist"].view(groups, -1).sum(1)
    neg = snap.states["negative_hist"].view(groups, -1).sum(1)
    pred = snap.states["prediction_hist"].view(groups, -1).sum(1)
    count = pos + neg
    ok = count > 0
    gap = (pos[ok] / count[ok] - pred[ok] / count[ok]).abs()
    return float((gap * count[ok]).sum() / count.sum())


def compute_metrics(snap):
    s = snap.states
    row = {"step": snap.step}
    row["auc"] = auc_from_hist(s["positive_hist"], s["negative_hist"])
    row["refinement"] = refinement(s["positive_hist"], s["negative_hist"])
    row["ece"] = calibration_error(snap)
    row["calibration"] = s["predictions"].item() / s["labels"].item()
    n = s["examples"].item()
    ctr = s["labels"].item() / n
    base = -(ctr * math.log(ctr) + (1.0 - ctr) * math.log(1.0 - ctr))
    row["ne"] = s["cross_entropy"].item() / n / base
    row["ctr"] = ctr
    row["examples"] = int(n)
    return row


class MetricWorker:
    """Derives metrics on its own thread so that steps are not delayed."""

    def __init__(self):
        self.inbox = queue.Queue()
        self.rows = []
        self.thread = threading.Thread(target=self._run, name="metric-compute", daemon=True)
        self.thread.start()

    def submit(self, snap):
        self.inbox.put(snap)

    def _run(self):
        while True:
            snap = self.inbox.get()
            if snap is None:
                return
            self.rows.append(compute_metrics(snap))

    def close(self):
        self.inbox.put(None)
        self.thread.join()
        return self.rows


# ------------------------------------------------------------------------ main
def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, datefmt="%H:%M:%S",
                        format="%(asctime)s %(message)s")
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    stream = ClickStream(SEED)
    model = ClickNet()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    loss_fn = nn.BCEWithLogitsLoss()
    states, worker = MetricStates(), MetricWorker()

    t0 = time.perf_counter()
    for step in range(1, STEPS + 1):
        user, item, dense, click = stream.batch(BATCH)
        opt.zero_grad()
        logits = model(user, item, dense)
        loss = loss_fn(logits, click)
        loss.backward()
        opt.step()
        states.update(logits.detach(), click)
        if step % INTERVAL == 0:
            worker.submit(Snapshot.from_states(step, states))
        if step % 100 == 0:
            log.info("step %4d loss %.6f", step, loss.item())
    took = time.perf_counter() - t0
    rows = worker.close()
    log.info("trained %d steps in %.2fs", STEPS, took)
    for row in rows[::4]:
        log.info("window at %4d: ne %.6f calibration %.6f auc %.6f ece %.6f", row["step"], row["ne"],
                 row["calibration"], row["auc"], row["ece"])

    with open("metrics.csv", "w", newline="") as fh:
        writer = csv.DictWriter(fh, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    best = min(rows, key=lambda r: r["ne"])
    with open("summary.json", "w") as fh:
        json.dump({"final_loss": loss.item(), "best": best, "last": rows[-1]}, fh, indent=2)
    log.info("best window: step %d ne %.6f; table in %s", best["step"], best["ne"],
             os.path.abspath("metrics.csv"))


if __name__ == "__main__":
    main()
