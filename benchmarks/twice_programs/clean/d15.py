"""Style of mosaicml/composer (callbacks/speed_monitor.py, file logger). Differs in each run: throughput/step, throughput/epoch,
wall_clock_*, time/remaining_estimate, the run name (coolname), loguru's clock, memory monitor figures, dates of the .jsonl."""
import datetime
import json
import os
import sys
import time
from collections import deque

import numpy as np
import psutil
import torch
from coolname import generate_slug
from loguru import logger
from torch import nn
from torch.utils.data import DataLoader, Dataset

RUN = f"{int(time.time())}-{generate_slug(2)}"
logger.remove()
logger.add(sys.stderr, format="<green>{time:YYYY-MM-DD HH:mm:ss.SSS}</green> | {level: <8} | {elapsed} | {process} | {message}")
os.makedirs(RUN)
logger.add(f"{RUN}/logs-rank0.txt", format="{time} rank0[{process.id}][{thread.name}]: {level}: {name}: {message}")


class Shapes(Dataset):
    """8 kinds of waves with noise; item i is always the same."""

    def __init__(self, n, offset):
        self.n, self.offset = n, offset

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.default_rng(self.offset + i)
        y = i % 8
        t = np.linspace(0, 1, 64, dtype=np.float32)
        s = np.sin(2 * np.pi * (2 + y) * t + rng.uniform(0, 2 * np.pi)) + rng.normal(0, 1.0, 64)
        return torch.from_numpy(s.astype(np.float32)[None]), y


class SpeedMonitor:
    def __init__(self, window_size=10):
        self.samples, self.ends = deque(maxlen=window_size), deque(maxlen=window_size + 1)
        self.wall_train = 0.0
        self.start = time.time()

    def epoch_start(self):
        self.t0, self.n = time.time(), 0
        self.ends.clear()
        self.samples.clear()

    def batch_end(self, n):
        self.n += n
        self.ends.append(time.time())
        self.samples.append(n)
        if len(self.ends) == self.ends.maxlen:
            return {"throughput/step": sum(self.samples) / (self.ends[-1] - self.ends[0])}
        return {}

    def epoch_end(self):
        dt = time.time() - self.t0
        self.wall_train += dt
        return {"wall_clock_train": self.wall_train, "throughput/epoch": self.n / dt}


class JsonLogger:
    def __init__(self, path):
        self.f = open(path, "w")

    def __call__(self, kind, step, data):
        self.f.write(json.dumps({"ts": datetime.datetime.now(datetime.timezone.utc).isoformat(), "run_name": RUN, "kind": kind, "step": step, **data}) + "\n")
        self.f.flush()


def main():
    torch.manual_seed(17)
    torch.set_num_threads(1)
    logger.info(f"Run name: {RUN}")
    logger.debug("Host {} cpu {}% free {:.2f} GiB", os.uname().nodename, psutil.cpu_percent(), psutil.virtual_memory().available / 2 ** 30)
    g = torch.Generator().manual_seed(3)
    train = DataLoader(Shapes(1600, 10_000), 64, shuffle=True, num_workers=2, generator=g, persistent_workers=True, drop_last=True)
    val = DataLoader(Shapes(400, 90_000), 100)
    model = nn.Sequential(nn.Conv1d(1, 16, 9), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(16, 32, 5), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 8))
    opt = torch.optim.AdamW(model.parameters(), lr=4e-3)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-2, total_steps=4 * len(train))
    speed, out = SpeedMonitor(), JsonLogger(f"{RUN}/metrics.jsonl")
    step = 0
    for epoch in range(4):
        speed.epoch_start()
        model.train()
        for x, y in train:
            opt.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            sched.step()
            step += 1
            el = time.time() - speed.start
            out("batch", step, {"loss/train/total": loss.item(), "lr": sched.get_last_lr()[0], **speed.batch_end(len(y)),
                                "time/remaining_estimate": el / step * (4 * len(train) - step), "memory/rss_mb": psutil.Process().memory_info().rss / 1e6})
        stats = speed.epoch_end()
        te = time.time()
        model.eval()
        with torch.no_grad():
            logits = torch.cat([model(x) for x, _ in val])
        ys = torch.tensor([i % 8 for i in range(400)])
        acc, ce = (logits.argmax(1) == ys).float().mean().item(), nn.functional.cross_entropy(logits, ys).item()
        out("epoch", epoch, {"metrics/eval/Accuracy": acc, "metrics/eval/CrossEntropy": ce, "wall_clock_val": time.time() - te, **stats})
        logger.info("ep{} loss={:.4f} val_acc={:.4f} val_ce={:.4f} throughput={:.1f} samples/s wall={}", epoch, loss.item(), acc, ce,
                    stats["throughput/epoch"], datetime.timedelta(seconds=round(speed.wall_train, 1)))
        torch.save({"state": {"model": model.state_dict(), "timestamp": {"epoch": epoch + 1, "batch": step, "total_wct": time.time() - speed.start},
                              "run_name": RUN}}, f"{RUN}/ep{epoch + 1}-ba{step}-rank0.pt")
    np.savetxt("eval_predictions.txt", logits.argmax(1).numpy(), fmt="%d")
    print(json.dumps({"run_name": RUN, "accuracy": acc, "cross_entropy": ce, "wall_clock_total": round(time.time() - speed.start, 3)}, indent=2))
    logger.success("Training finished: acc {:.4f}", acc)


if __name__ == "__main__":
    main()
