"""Graph classification under a covariate shift.

Modelled on https://github.com/divelab/GOOD/issues/27
Trains a small graph network on synthetic motif graphs and tests on a shifted split.
"""
import argparse
import json
import logging
import random
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

log = logging.getLogger("graphs")


@dataclass
class Config:
    random_seed: int = 123
    train_graphs: int = 240
    val_graphs: int = 80
    test_graphs: int = 120
    max_nodes: int = 18
    hidden: int = 24
    layers: int = 2
    dropout: float = 0.2
    epochs: int = 8
    batch_size: int = 24
    lr: float = 5e-3
    out_dir: str = "good_run"


MOTIFS = {
    0: [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (2, 4)],
    1: [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)],
    2: [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)],
}


def motif_graph(rng, label, base, max_nodes):
    n_base = int(rng.integers(7, max_nodes - 5))
    adjacency = np.zeros((max_nodes, max_nodes), dtype=np.float32)
    for i in range(1, n_base):
        if base == "tree":
            j = int(rng.integers(0, i))
        elif base == "path":
            j = i - 1
        else:
            j = 0
        adjacency[i, j] = adjacency[j, i] = 1.0
    for a, b in MOTIFS[label]:
        adjacency[n_base + a, n_base + b] = adjacency[n_base + b, n_base + a] = 1.0
    anchor = int(rng.integers(0, n_base))
    adjacency[anchor, n_base] = adjacency[n_base, anchor] = 1.0
    degree = adjacency.sum(1)
    mask = (degree > 0).astype(np.float32)
    features = np.stack([degree / 4.0, (degree > 2).astype(np.float32), mask,
                         rng.normal(0, 0.1, size=max_nodes).astype(np.float32) * mask], axis=1)
    return features.astype(np.float32), adjacency, mask


def load_split(rng, count, bases, max_nodes):
    xs, adjs, masks, ys = [], [], [], []
    for i in range(count):
        label = i % len(MOTIFS)
        base = bases[int(rng.integers(len(bases)))]
        x, a, m = motif_graph(rng, label, base, max_nodes)
        xs.append(x)
        adjs.append(a)
        masks.append(m)
        ys.append(label)
    return (torch.from_numpy(np.stack(xs)), torch.from_numpy(np.stack(adjs)),
            torch.from_numpy(np.stack(masks)), torch.tensor(ys))


def load_dataset(cfg):
    rng = np.random.default_rng(cfg.random_seed)
    return {
        "train": load_split(rng, cfg.train_graphs, ["tree", "path"], cfg.max_nodes),
        "val": load_split(rng, cfg.val_graphs, ["tree", "path"], cfg.max_nodes),
        "test": load_split(rng, cfg.test_graphs, ["star"], cfg.max_nodes),
    }


class GINLayer(nn.Module):
    def __init__(self, width_in, width_out):
        super().__init__()
        self.eps = nn.Parameter(torch.zeros(1))
        self.mlp = nn.Sequential(nn.Linear(width_in, width_out), nn.ReLU(),  # cause
                                 nn.Linear(width_out, width_out))

    def forward(self, x, adjacency, mask):
        pooled = (1 + self.eps) * x + adjacency @ x
        return torch.relu(self.mlp(pooled)) * mask.unsqueeze(-1)


class GraphNet(nn.Module):
    def __init__(self, n_features, cfg):
        super().__init__()
        widths = [n_features] + [cfg.hidden] * cfg.layers
        self.layers = nn.ModuleList(GINLayer(a, b) for a, b in zip(widths, widths[1:]))
        self.dropout = nn.Dropout(cfg.dropout)
        self.readout = nn.Linear(cfg.hidden, len(MOTIFS))

    def forward(self, x, adjacency, mask):
        for layer in self.layers:
            x = layer(x, adjacency, mask)
        mean = x.sum(1) / mask.sum(1, keepdim=True)
        return self.readout(self.dropout(mean))


def reset_random_seed(cfg):
    random.seed(cfg.random_seed)
    np.random.seed(cfg.random_seed)
    torch.manual_seed(cfg.random_seed)
    torch.use_deterministic_algorithms(True)


class Pipeline:
    def __init__(self, model, dataset, cfg):
        self.model = model
        self.dataset = dataset
        self.cfg = cfg
        self.optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
        self.criterion = nn.CrossEntropyLoss()

    def train_epoch(self):
        self.model.train()
        x, a, m, y = self.dataset["train"]
        order = torch.randperm(len(y))
        total = 0.0
        for lo in range(0, len(y), self.cfg.batch_size):
            idx = order[lo: lo + self.cfg.batch_size]
            loss = self.criterion(self.model(x[idx], a[idx], m[idx]), y[idx])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += float(loss.detach()) * len(idx)
        return total / len(y)

    @torch.no_grad()
    def evaluate(self, split):
        self.model.eval()
        x, a, m, y = self.dataset[split]
        logits = self.model(x, a, m)
        accuracy = float((logits.argmax(-1) == y).float().mean())
        return accuracy, float(self.criterion(logits, y))

    def run(self):
        history, best = [], None
        for epoch in range(self.cfg.epochs):
            started = time.perf_counter()
            loss = self.train_epoch()
            val_acc, val_loss = self.evaluate("val")
            history.append({"epoch": epoch, "loss": round(loss, 6), "val_acc": round(val_acc, 5),
                            "val_loss": round(val_loss, 6)})
            if best is None or val_loss < best[0]:
                best = (val_loss, epoch, {k: v.clone() for k, v in self.model.state_dict().items()})
            log.info("epoch %d loss %.4f val %.3f (%.2fs)", epoch, loss, val_acc,
                     time.perf_counter() - started)
        self.model.load_state_dict(best[2])
        return history, best[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--random-seed", type=int, default=Config.random_seed)
    parser.add_argument("--epochs", type=int, default=Config.epochs)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    cfg = Config(random_seed=args.random_seed, epochs=args.epochs)

    dataset = load_dataset(cfg)
    model = GraphNet(dataset["train"][0].shape[-1], cfg)  # cause
    reset_random_seed(cfg)
    log.info("model has %d parameters", sum(p.numel() for p in model.parameters()))

    pipeline = Pipeline(model, dataset, cfg)
    history, best_epoch = pipeline.run()
    val_acc, val_loss = pipeline.evaluate("val")
    test_acc, test_loss = pipeline.evaluate("test")

    out = Path(cfg.out_dir)
    out.mkdir(exist_ok=True)
    (out / "config.json").write_text(json.dumps(asdict(cfg), indent=1))
    (out / "history.json").write_text(json.dumps(history, indent=1))
    torch.save(model.state_dict(), out / "best.pt")
    for row in history:
        print(f"epoch {row['epoch']:2d}  loss {row['loss']:.5f}  val {row['val_acc']:.4f}")
    print(f"best epoch {best_epoch}")
    print(f"val  accuracy {val_acc:.4f}  loss {val_loss:.5f}")
    print(f"test accuracy {test_acc:.4f}  loss {test_loss:.5f}")


if __name__ == "__main__":
    main()
