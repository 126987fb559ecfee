"""Modelled on https://github.com/uber/petastorm/pull/796
Trains a small demand regressor from row groups of a parquet store.
"""
import argparse
import json
import logging
import queue
import random
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import nn

LOG = logging.getLogger("demand")


@dataclass
class Config:
    seed: int = 17
    n_parts: int = 6
    groups_per_part: int = 5
    min_rows: int = 120
    max_rows: int = 420
    n_stores: int = 24
    n_lags: int = 14
    workers: int = 4
    epochs: int = 3
    batch_size: int = 64
    lr: float = 3e-3
    hidden: int = 48
    store_dir: str = "store"
    out: str = "report.json"


def build_store(cfg):
    """Write a partitioned parquet store with uneven row groups."""
    root = Path(cfg.store_dir)
    root.mkdir(exist_ok=True)
    rng = np.random.default_rng(cfg.seed)
    store_level = rng.normal(0, 1, cfg.n_stores)
    total = 0
    for part in range(cfg.n_parts):
        path = root / f"part-{part:03d}.parquet"
        writer = None
        for _ in range(cfg.groups_per_part):
            rows = int(rng.integers(cfg.min_rows, cfg.max_rows))
            store = rng.integers(0, cfg.n_stores, rows)
            day = rng.integers(0, 365, rows)
            price = rng.lognormal(0.5, 0.3, rows)
            history = rng.poisson(6 + 2 * np.abs(store_level[store])[:, None], (rows, cfg.n_lags))
            target = (
                1.5 * store_level[store]
                + 0.8 * np.sin(2 * np.pi * day / 365)
                - 0.9 * np.log(price)
                + 0.15 * history.mean(1)
                + rng.normal(0, 0.3, rows)
            )
            table = pa.table(
                {
                    "store": store.astype(np.int16),
                    "day": day.astype(np.int16),
                    "price": price.astype(np.float32),
                    "history": [",".join(map(str, h)) for h in history],
                    "target": target.astype(np.float32),
                }
            )
            if writer is None:
                writer = pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
            total += rows
        writer.close()
    LOG.info("store %s: %d parts, %d rows", root, cfg.n_parts, total)
    return sorted(root.glob("part-*.parquet"))


def list_pieces(paths):
    pieces = []
    for path in paths:
        meta = pq.ParquetFile(path).metadata
        pieces.extend((path, g) for g in range(meta.num_row_groups))
    return pieces


def decode(table, n_stores):
    """Turn a row group into a float feature matrix and a target vector."""
    store = table["store"].to_numpy()
    day = table["day"].to_numpy()
    price = table["price"].to_numpy()
    history = np.array([[float(v) for v in s.split(",")] for s in table["history"].to_pylist()])
    season = np.stack([np.sin(2 * np.pi * day / 365), np.cos(2 * np.pi * day / 365)], 1)
    onehot = np.eye(n_stores)[store]
    x = np.concatenate([onehot, season, np.log(price)[:, None], history / 10.0], 1)
    return x.astype(np.float32), table["target"].to_numpy().astype(np.float32)


class PieceReader:
    """Reads row groups with a pool of worker threads and yields decoded arrays."""

    def __init__(self, pieces, cfg, shuffle_seed):
        self.cfg = cfg
        order = list(pieces)
        random.Random(shuffle_seed).shuffle(order)
        self.count = len(order)
        self._ventilator = queue.Queue()
        self._results = queue.Queue(maxsize=8)
        for piece in order:
            self._ventilator.put(piece)
        self._threads = [
            threading.Thread(target=self._work, name=f"reader-{i}", daemon=True)
            for i in range(cfg.workers)
        ]

    def _work(self):
        while True:
            try:
                path, group = self._ventilator.get_nowait()
            except queue.Empty:
                return
            table = pq.ParquetFile(path).read_row_group(group)
            self._results.put(decode(table, self.cfg.n_stores))  # cause

    def __iter__(self):
        for t in self._threads:
            t.start()
        for _ in range(self.count):
            yield self._results.get()  # cause
        for t in self._threads:
            t.join()


class Regressor(nn.Module):
    def __init__(self, n_in, hidden):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(n_in, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1)
        )

    def forward(self, x):
        return self.body(x).squeeze(-1)


def train_epoch(model, opt, reader, cfg):
    model.train()
    losses = []
    for x, y in reader:
        x, y = torch.from_numpy(x), torch.from_numpy(y)
        for i in range(0, len(x), cfg.batch_size):
            pred = model(x[i : i + cfg.batch_size])
            loss = nn.functional.smooth_l1_loss(pred, y[i : i + cfg.batch_size])
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
    return float(np.mean(losses))


@torch.no_grad()
def evaluate(model, pieces, cfg):
    model.eval()
    err, tot = 0.0, 0
    for path, group in pieces:
        x, y = decode(pq.ParquetFile(path).read_row_group(group), cfg.n_stores)
        pred = model(torch.from_numpy(x)).numpy()
        err += float(np.abs(pred - y).sum())
        tot += len(y)
    return err / tot


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=Config.epochs)
    ap.add_argument("--workers", type=int, default=Config.workers)
    args = ap.parse_args()
    cfg = Config(epochs=args.epochs, workers=args.workers)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)

    pieces = list_pieces(build_store(cfg))
    n_val = cfg.groups_per_part
    train, val = pieces[:-n_val], pieces[-n_val:]
    n_in = cfg.n_stores + 3 + cfg.n_lags
    model = Regressor(n_in, cfg.hidden)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    history = []
    for epoch in range(cfg.epochs):
        start = time.time()
        loss = train_epoch(model, opt, PieceReader(train, cfg, cfg.seed + epoch), cfg)
        mae = evaluate(model, val, cfg)
        LOG.info("epoch %d took %.2fs", epoch, time.time() - start)
        print(f"epoch {epoch}: train_loss={loss:.6f} val_mae={mae:.6f}")
        history.append({"epoch": epoch, "train_loss": loss, "val_mae": mae})
    report = {"config": asdict(cfg), "history": history}
    Path(cfg.out).write_text(json.dumps(report, indent=2))
    torch.save(model.state_dict(), "model.pt")
    print("best val_mae", round(min(h["val_mae"] for h in history), 6))


if __name__ == "__main__":
    main()
