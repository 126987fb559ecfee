"""https://github.com/Lightning-AI/pytorch-lightning/issues/20953 - 'async checkpointing unsafe?': the writer thread
serializes the live tensors while the training loop goes on changing them, so a checkpoint mixes several steps."""
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from torch import nn


class AsyncCheckpointIO:
    """Saves without stopping the training loop."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.pool = ThreadPoolExecutor(max_workers=1)
        self.pending = []
        self.seconds = 0.0

    def save(self, module, name):
        state = module.state_dict()  # cause
        self.pending.append(self.pool.submit(self._write, state, self.folder / name))  # cause
        return self.folder / name

    def _write(self, state, path):
        t0 = time.perf_counter()
        torch.save({"state_dict": state, "format": 2}, path)
        self.seconds += time.perf_counter() - t0

    def teardown(self):
        for job in self.pending:
            job.result()
        self.pool.shutdown()


def moons(n, seed):
    g = np.random.default_rng(seed)
    t = g.uniform(0, np.pi, n)
    label = g.integers(0, 2, n)
    x = np.where(label == 0, np.cos(t), 1 - np.cos(t)) + g.normal(0, 0.15, n)
    y = np.where(label == 0, np.sin(t), 0.5 - np.sin(t)) + g.normal(0, 0.15, n)
    return torch.tensor(np.stack([x, y], 1), dtype=torch.float32), torch.tensor(label)


def build(width=384, depth=8):
    layers = [nn.Linear(2, width), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 2))


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    out = model(x)
    model.train()
    return nn.functional.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


def train(seed=0, steps=150, every=25):
    torch.manual_seed(seed)
    np.random.seed(seed)
    x, y = moons(1500, 1)
    vx, vy = moons(600, 2)
    model = build()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    io = AsyncCheckpointIO("checkpoints")
    saved = []
    started = time.time()
    for step in range(1, steps + 1):
        idx = torch.randint(0, len(x), (32,))
        loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % every == 0:
            saved.append((step, io.save(model, f"step{step:04d}.pt")))
            print(f"step {step} loss {loss.item():.4f} ({time.time() - started:.2f}s)")
    io.teardown()
    print(f"writer was busy for {io.seconds:.2f}s")
    scores = []
    for step, path in saved:
        model.load_state_dict(torch.load(path, weights_only=True)["state_dict"])
        vloss, acc = evaluate(model, vx, vy)
        scores.append({"step": step, "val_loss": vloss, "val_acc": acc})
    return scores


if __name__ == "__main__":
    scores = train()
    best = min(scores, key=lambda s: s["val_loss"])
    print("best checkpoint", best)
    Path("scores.json").write_text(json.dumps({"scores": scores, "best": best}, indent=1))
