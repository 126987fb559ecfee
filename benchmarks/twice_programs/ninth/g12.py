"""Retrieval evaluation against an embedding service under an open-loop load.

Modelled on https://github.com/Anush008/fastembed-rs/issues/107 (the same text got other embedding values than before).
"""
import argparse
import json
import logging
import random
import time

import numpy as np
import torch

from g12_serving.engine import Engine, QuantisedEncoder

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("serve-eval")


def make_texts(n_docs, n_queries, vocab, seed):
    """Documents with a topic and queries that quote a part of their target document."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(vocab, 0.05), 12)
    docs = [rng.choice(vocab, rng.integers(8, 40), p=topics[rng.integers(12)]) for _ in range(n_docs)]
    target = rng.integers(0, n_docs, n_queries)
    queries = []
    for t in target:
        src = docs[t]
        k = rng.integers(3, max(4, len(src) // 2))
        noise = rng.integers(0, vocab, rng.integers(0, 3))
        queries.append(np.concatenate([rng.choice(src, k), noise]))
    return docs, queries, target


def drive(engine, texts, rate, seed):
    """Send all texts with exponential gaps and wait for the answers."""
    gaps = np.random.default_rng(seed).exponential(1.0 / rate, len(texts))
    t0 = time.perf_counter()
    for rid, (toks, gap) in enumerate(zip(texts, gaps)):
        time.sleep(gap)
        engine.submit(rid, toks)
    engine.close()
    wall = time.perf_counter() - t0
    log.info("%d requests in %.2fs (%.0f req/s, mean batch %.2f)", len(texts), wall, len(texts) / wall,
             np.mean(engine.batches))
    return torch.stack([engine.results[i] for i in range(len(texts))])


def retrieval_metrics(q, d, target):
    sim = (q @ d.T).numpy()
    rank = (sim > sim[np.arange(len(target)), target][:, None]).sum(1)
    return {"mrr": float((1.0 / (1 + rank)).mean()), "recall@1": float((rank == 0).mean()),
            "recall@10": float((rank < 10).mean()), "mean_sim": float(sim[np.arange(len(target)), target].mean())}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=9)
    p.add_argument("--docs", type=int, default=600)
    p.add_argument("--queries", type=int, default=400)
    p.add_argument("--vocab", type=int, default=800)
    p.add_argument("--dim", type=int, default=48)
    p.add_argument("--rate", type=float, default=1500.0)
    p.add_argument("--out", default="retrieval.json")
    args = p.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)

    docs, queries, target = make_texts(args.docs, args.queries, args.vocab, args.seed)
    model = QuantisedEncoder(args.vocab, args.dim, 2 * args.dim).eval()
    dv = drive(Engine(model).start(), docs, args.rate, args.seed)
    qv = drive(Engine(model).start(), queries, args.rate, args.seed + 1)
    metrics = retrieval_metrics(qv, dv, target)
    np.savez_compressed("embeddings.npz", docs=dv.numpy(), queries=qv.numpy())
    with open(args.out, "w") as f:
        json.dump(metrics, f, indent=1)
    print(" ".join(f"{k}={v:.8f}" for k, v in metrics.items()))


if __name__ == "__main__":
    main()
