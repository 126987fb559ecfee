"""Sentence vectors from a small GPT-2 and nearest-neighbour search over them.

Modelled on https://github.com/huggingface/transformers/issues/2627
The hidden state of the same input tokens changed every time the user called the same GPT2 model.
"""
import argparse
import csv
import logging
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score
from transformers import GPT2Config, GPT2Model

log = logging.getLogger("gpt2vec")


@dataclass
class Config:
    vocab: int = 120
    n_sentences: int = 60
    length: int = 12
    topics: int = 4
    width: int = 48
    layers: int = 3
    heads: int = 4
    batch: int = 16
    layer: int = 2
    seed: int = 11
    checkpoint: str = "tiny-gpt2"
    queries: list = field(default_factory=lambda: [0, 7, 21, 42])


def build_corpus(cfg):
    """Each topic prefers its own slice of the vocabulary."""
    rng = np.random.default_rng(cfg.seed)
    block = cfg.vocab // cfg.topics
    topics = rng.integers(0, cfg.topics, cfg.n_sentences)
    rows = []
    for t in topics:
        own = rng.integers(t * block, (t + 1) * block, cfg.length)
        common = rng.integers(0, cfg.vocab, cfg.length)
        rows.append(np.where(rng.random(cfg.length) < 0.55, own, common))
    return np.stack(rows), topics


def write_checkpoint(cfg):
    """Create the pretrained weights from a private generator."""
    model_cfg = GPT2Config(
        vocab_size=cfg.vocab,
        n_positions=cfg.length,
        n_embd=cfg.width,
        n_layer=cfg.layers,
        n_head=cfg.heads,
    )
    model = GPT2Model(model_cfg)
    gen = torch.Generator().manual_seed(cfg.seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith("bias"):
                p.zero_()
            elif "ln_" in name:
                p.fill_(1.0)
            else:
                p.copy_(torch.randn(p.shape, generator=gen) * 0.08)
    path = Path(cfg.checkpoint)
    path.mkdir(exist_ok=True)
    torch.save(model.state_dict(), path / "weights.pt")
    return model_cfg


class SentenceEncoder:
    def __init__(self, cfg, model_cfg):
        self.cfg = cfg
        self.model = GPT2Model(model_cfg)
        self.model.load_state_dict(torch.load(Path(cfg.checkpoint) / "weights.pt"))
        log.info("loaded %d parameters", sum(p.numel() for p in self.model.parameters()))

    @torch.no_grad()
    def encode(self, ids):
        out = []
        for i in range(0, len(ids), self.cfg.batch):
            batch = torch.as_tensor(ids[i:i + self.cfg.batch], dtype=torch.long)
            states = self.model(batch, output_hidden_states=True).hidden_states  # cause
            out.append(states[self.cfg.layer].mean(dim=1))
        return torch.cat(out).numpy()


def normalise(vectors):
    v = vectors - vectors.mean(axis=0)
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def neighbours(vectors, query, k=3):
    sims = vectors @ vectors[query]
    sims[query] = -np.inf
    order = np.argsort(-sims, kind="stable")[:k]
    return [(int(j), float(sims[j])) for j in order]


def recall_by_topic(vectors, topics, k=5):
    hits = []
    for i in range(len(vectors)):
        near = [j for j, _ in neighbours(vectors, i, k)]
        hits.append(np.mean(topics[near] == topics[i]))
    return float(np.mean(hits))


def cluster(vectors, topics, cfg):
    km = KMeans(cfg.topics, n_init=5, random_state=cfg.seed).fit(vectors)
    return km.labels_, normalized_mutual_info_score(topics, km.labels_)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--layer", type=int, default=Config.layer)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    cfg = Config(layer=args.layer)
    np.random.seed(cfg.seed)
    torch.set_num_threads(1)
    t0 = time.time()
    ids, topics = build_corpus(cfg)
    model_cfg = write_checkpoint(cfg)
    encoder = SentenceEncoder(cfg, model_cfg)
    vectors = normalise(encoder.encode(ids))
    np.save("vectors.npy", vectors)
    log.info("encoded %d sentences in %.2fs", len(ids), time.time() - t0)

    print(f"layer {cfg.layer}, {vectors.shape[1]} dimensions")
    for q in cfg.queries:
        text = ", ".join(f"{j}({s:+.4f})" for j, s in neighbours(vectors, q))
        print(f"query {q:2d} (topic {topics[q]}): {text}")
    labels, nmi = cluster(vectors, topics, cfg)
    print(f"recall@5 {recall_by_topic(vectors, topics):.4f}")
    print(f"cluster nmi {nmi:.4f}")
    with open("clusters.csv", "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["sentence", "topic", "cluster"])
        w.writerows(zip(range(len(topics)), topics.tolist(), labels.tolist()))


if __name__ == "__main__":
    main()
