"""Node classification on a citation-like graph with sampled neighbourhoods.

Modelled on https://github.com/Snapchat/GiGL/pull/730

Two sampling ranks prepare the mini-batches of every epoch; inference writes one
embedding per node. Outputs: epochs.csv, embeddings.npy, report.json.
"""
import csv
import json
import logging
import os
import random
import sys
import time

import numpy as np
import torch

from z09_pkg.graph import make_citation_graph
from z09_pkg.model import SageNet
from z09_pkg.sampling import NeighborSampler, create_sampling_config

CONFIG = {
    "seed": 123,
    "nodes": 1500,
    "classes": 5,
    "features": 24,
    "fanouts": [6, 4],
    "batch_size": 96,
    "epochs": 6,
    "hidden": 32,
    "lr": 0.01,
    "ranks": 2,
}


def batches(ids, size, gen=None):
    if gen is not None:
        ids = ids[torch.randperm(len(ids), generator=gen).numpy()]
    for k in range(0, len(ids), size):
        yield ids[k:k + size]


def train_epoch(model, graph, samplers, cfg, opt, gen):
    model.train()
    total = count = 0
    for k, seeds in enumerate(batches(graph.train_ids, cfg["batch_size"], gen)):
        block = samplers[k % len(samplers)].sample(seeds)
        opt.zero_grad()
        logits, _ = model(graph.x, block)
        loss = torch.nn.functional.cross_entropy(logits, graph.y[torch.from_numpy(seeds)])
        loss.backward()
        opt.step()
        total += loss.item() * len(seeds)
        count += len(seeds)
    return total / count


@torch.no_grad()
def infer(model, graph, sampler, cfg, ids):
    model.eval()
    logits, embeddings = [], []
    for seeds in batches(ids, 4 * cfg["batch_size"]):
        out, emb = model(graph.x, sampler.sample(seeds))
        logits.append(out)
        embeddings.append(emb)
    return torch.cat(logits), torch.cat(embeddings)


def accuracy(logits, labels):
    return (logits.argmax(1) == labels).float().mean().item()


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, datefmt="%H:%M:%S",
                        format="%(asctime)s %(name)s: %(message)s")
    log = logging.getLogger("sage")
    cfg = CONFIG
    random.seed(cfg["seed"])
    np.random.seed(cfg["seed"])
    torch.manual_seed(cfg["seed"])

    graph = make_citation_graph(cfg["nodes"], cfg["classes"], cfg["features"], cfg["seed"])
    log.info("%d nodes, %d edges, %d training nodes", graph.n, len(graph.indices), len(graph.train_ids))
    samplers = []
    for rank in range(cfg["ranks"]):
        sampling = create_sampling_config(cfg["fanouts"], cfg["batch_size"], rank=rank, world_size=cfg["ranks"])
        samplers.append(NeighborSampler(graph, sampling))
        log.info("rank %d: fanouts %s, batch size %d, replace %s", rank, sampling.num_neighbors,
                 sampling.batch_size, sampling.with_replacement)

    model = SageNet(cfg["features"], cfg["hidden"], cfg["classes"], layers=len(cfg["fanouts"]))
    opt = torch.optim.Adam(model.parameters(), lr=cfg["lr"], weight_decay=5e-4)
    gen = torch.Generator().manual_seed(cfg["seed"])
    rows = []
    for epoch in range(cfg["epochs"]):
        t0 = time.perf_counter()
        loss = train_epoch(model, graph, samplers, cfg, opt, gen)
        logits, _ = infer(model, graph, samplers[0], cfg, graph.val_ids)
        val = accuracy(logits, graph.y[torch.from_numpy(graph.val_ids)])
        rows.append({"epoch": epoch, "loss": loss, "val_accuracy": val})
        log.info("epoch %d loss %.6f val accuracy %.4f (%.2fs)", epoch, loss, val, time.perf_counter() - t0)

    everything = np.arange(graph.n)
    logits, embeddings = infer(model, graph, samplers[0], cfg, everything)
    np.save("embeddings.npy", embeddings.numpy())
    test = accuracy(logits[graph.test_ids], graph.y[torch.from_numpy(graph.test_ids)])
    with open("epochs.csv", "w", newline="") as fh:
        writer = csv.DictWriter(fh, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    with open("report.json", "w") as fh:
        json.dump({"config": cfg, "test_accuracy": test,
                   "embedding_norm": float(embeddings.double().norm())}, fh, indent=2)
    log.info("test accuracy %.4f, embeddings in %s", test, os.path.abspath("embeddings.npy"))


if __name__ == "__main__":
    main()
