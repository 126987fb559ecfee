"""Knowledge graph embedding with sampled negatives.

Report: https://github.com/uma-pi1/kge/issues/100
Batches are prepared by a few worker processes and consumed by the trainer in order.
"""
import argparse
import json
import logging
import multiprocessing as mp
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

log = logging.getLogger("kge")

_WORKER = {}


@dataclass
class KgeConfig:
    entities: int = 500
    relations: int = 12
    triples: int = 9000
    dim: int = 32
    negatives: int = 8
    batch: int = 150
    epochs: int = 6
    workers: int = 4
    lr: float = 0.08
    margin: float = 1.0
    seed: int = 2020
    out: str = "kge_run"


def knowledge_graph(cfg: KgeConfig) -> np.ndarray:
    rng = np.random.default_rng(cfg.seed)
    pos = rng.normal(size=(cfg.entities, 6))
    shift = rng.normal(scale=0.8, size=(cfg.relations, 6))
    heads = rng.integers(0, cfg.entities, cfg.triples)
    rels = rng.integers(0, cfg.relations, cfg.triples)
    tails = np.empty(cfg.triples, dtype=int)
    for i, (h, r) in enumerate(zip(heads, rels)):
        d = ((pos - pos[h] - shift[r]) ** 2).sum(1)
        tails[i] = np.argpartition(d, 4)[:4][i % 4]
    return np.column_stack([heads, rels, tails])


def init_worker(ids, cfg, triples):
    worker_id = ids.get()
    _WORKER["rng"] = np.random.default_rng([cfg.seed, worker_id])  # cause
    _WORKER["cfg"] = cfg
    _WORKER["triples"] = triples
    known = {}
    for h, r, t in triples.tolist():
        known.setdefault((h, r), set()).add(t)
    _WORKER["known"] = known


def collate(index):
    """Corrupt the tails of one batch, avoiding known triples."""
    cfg, triples, known = _WORKER["cfg"], _WORKER["triples"], _WORKER["known"]
    batch = triples[index]
    negatives = _WORKER["rng"].integers(0, cfg.entities, size=(len(batch), cfg.negatives))  # cause
    for row, (h, r, _) in enumerate(batch.tolist()):
        bad = known[(h, r)]
        for col in range(cfg.negatives):
            while int(negatives[row, col]) in bad:
                negatives[row, col] = (negatives[row, col] + 1) % cfg.entities
    return batch, negatives


class TransE:
    def __init__(self, cfg: KgeConfig):
        rng = np.random.default_rng(cfg.seed + 1)
        bound = 6 / np.sqrt(cfg.dim)
        self.cfg = cfg
        self.E = rng.uniform(-bound, bound, (cfg.entities, cfg.dim))
        self.R = rng.uniform(-bound, bound, (cfg.relations, cfg.dim))

    def step(self, batch, negatives):
        cfg = self.cfg
        h, r, t = batch.T
        base = self.E[h] + self.R[r]
        pos = base - self.E[t]
        neg = base[:, None, :] - self.E[negatives]
        dp = (pos**2).sum(1)
        dn = (neg**2).sum(2)
        active = (cfg.margin + dp[:, None] - dn) > 0
        loss = np.where(active, cfg.margin + dp[:, None] - dn, 0).mean()
        scale = cfg.lr / cfg.negatives
        k = active.sum(1)[:, None]
        g_pos = 2 * pos * k
        g_neg = 2 * neg * active[:, :, None]
        np.add.at(self.E, h, -scale * (g_pos - g_neg.sum(1)))
        np.add.at(self.R, r, -scale * (g_pos - g_neg.sum(1)))
        np.add.at(self.E, t, scale * g_pos)
        np.add.at(self.E, negatives.ravel(), -scale * g_neg.reshape(-1, cfg.dim))
        norm = np.linalg.norm(self.E, axis=1, keepdims=True)
        self.E /= np.maximum(norm, 1.0)
        return float(loss)

    def ranks(self, triples):
        out = []
        for h, r, t in triples.tolist():
            d = ((self.E[h] + self.R[r] - self.E) ** 2).sum(1)
            out.append(int((d < d[t]).sum()) + 1)
        return np.array(out)


class Trainer:
    def __init__(self, cfg: KgeConfig):
        self.cfg = cfg
        data = knowledge_graph(cfg)
        cut = int(0.95 * len(data))
        self.train, self.valid = data[:cut], data[cut:]
        self.model = TransE(cfg)

    def run(self):
        cfg = self.cfg
        ctx = mp.get_context("fork")
        ids = ctx.SimpleQueue()
        for i in range(cfg.workers):
            ids.put(i)
        order = np.random.default_rng(cfg.seed + 2)
        trace = []
        with ctx.Pool(cfg.workers, init_worker, (ids, cfg, self.train)) as pool:
            for epoch in range(cfg.epochs):
                perm = order.permutation(len(self.train))
                batches = np.array_split(perm, len(perm) // cfg.batch)
                losses = [self.model.step(b, n) for b, n in pool.imap(collate, batches)]
                trace.append(round(float(np.mean(losses)), 8))
                log.info("epoch %d avg_loss %.6f", epoch, trace[-1])
        return trace


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(message)s")
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=30)
    ap.add_argument("--workers", type=int, default=KgeConfig.workers)
    ns = ap.parse_args()
    cfg = KgeConfig(epochs=ns.epochs, workers=ns.workers)
    t0 = time.time()
    trainer = Trainer(cfg)
    trace = trainer.run()
    ranks = trainer.model.ranks(trainer.valid)
    report = {
        "avg_loss": trace,
        "mrr": round(float((1 / ranks).mean()), 8),
        "hits_at_10": float((ranks <= 10).mean()),
    }
    out = Path(cfg.out)
    out.mkdir(exist_ok=True)
    (out / "trace.json").write_text(json.dumps(report, indent=1))
    np.save(out / "entities.npy", trainer.model.E)
    print("mrr", report["mrr"], "hits@10", report["hits_at_10"])
    log.info("%.2fs", time.time() - t0)


if __name__ == "__main__":
    main()
