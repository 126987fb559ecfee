"""https://github.com/VHRanger/nodevectors/issues/47 (and numba issue 6002) - the random walks draw inside an @njit function; numba keeps its own generator, which np.random.seed() in Python code does not reach."""
import argparse
import json
import os
import random
import time

import numpy as np
import torch
from numba import njit
from torch import nn


def community_graph(n_blocks=4, size=30, p_in=0.2, p_out=0.01, seed=9):
    rng = np.random.default_rng(seed)
    n = n_blocks * size
    block = np.repeat(np.arange(n_blocks), size)
    prob = np.where(block[:, None] == block[None, :], p_in, p_out)
    upper = np.triu(rng.random((n, n)) < prob, 1)
    adj = upper | upper.T
    for i in range(n):
        adj[i, (i + 1) % n] = adj[(i + 1) % n, i] = True
    indptr = np.concatenate([[0], np.cumsum(adj.sum(1))]).astype(np.int64)
    indices = np.nonzero(adj)[1].astype(np.int64)
    return indptr, indices, block


@njit
def walk_all(indptr, indices, starts, length):
    out = np.zeros((len(starts), length), np.int64)
    for k in range(len(starts)):
        node = starts[k]
        prev = -1
        for t in range(length):
            out[k, t] = node
            lo = indptr[node]
            degree = indptr[node + 1] - lo
            nxt = indices[lo + np.random.randint(0, degree)]  # cause
            if nxt == prev and degree > 1:
                nxt = indices[lo + (t * 7 + k) % degree]
            prev = node
            node = nxt
    return out


def skipgram_pairs(walks, window=3):
    left, right = [], []
    for off in range(1, window + 1):
        left.append(walks[:, :-off].ravel())
        right.append(walks[:, off:].ravel())
    return torch.from_numpy(np.concatenate(left)), torch.from_numpy(np.concatenate(right))


class Embedder(nn.Module):
    def __init__(self, n, dim):
        super().__init__()
        self.inp = nn.Embedding(n, dim)
        self.out = nn.Embedding(n, dim)
        nn.init.normal_(self.inp.weight, std=0.1)
        nn.init.zeros_(self.out.weight)

    def loss(self, a, b, neg):
        u = self.inp(a)
        pos = (u * self.out(b)).sum(1)
        bad = (u[:, None] * self.out(neg)).sum(2)
        return -(nn.functional.logsigmoid(pos).mean() + nn.functional.logsigmoid(-bad).sum(1).mean())


def purity(emb, block):
    unit = emb / np.linalg.norm(emb, axis=1, keepdims=True)
    sim = unit @ unit.T
    np.fill_diagonal(sim, -2)
    nearest = np.argsort(-sim, axis=1, kind="stable")[:, :5]
    return float((block[nearest] == block[:, None]).mean())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--walks", type=int, default=8)
    ap.add_argument("--length", type=int, default=16)
    ap.add_argument("--epochs", type=int, default=4)
    args = ap.parse_args()
    random.seed(42)
    np.random.seed(42)
    torch.manual_seed(42)
    print("node embedding, pid", os.getpid(), "on", os.uname().nodename)

    indptr, indices, block = community_graph()
    n = len(block)
    t0 = time.time()
    starts = np.random.permutation(np.repeat(np.arange(n), args.walks))
    walks = walk_all(indptr, indices, starts, args.length)
    print(f"{len(walks)} walks in {time.time() - t0:.2f}s")

    a, b = skipgram_pairs(walks)
    model = Embedder(n, 16)
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for epoch in range(args.epochs):
        order, total = torch.randperm(len(a)), 0.0
        for i in range(0, len(a), 1024):
            idx = order[i:i + 1024]
            loss = model.loss(a[idx], b[idx], torch.randint(0, n, (len(idx), 4)))
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        losses.append(total)
        print(f"epoch {epoch} loss {total:.4f}")
    score = purity(model.inp.weight.detach().numpy(), block)
    print(f"neighbour purity {score:.4f}")
    with open("node_embedding.json", "w") as f:
        json.dump({"losses": losses, "purity": score, "seconds": time.time() - t0}, f)


if __name__ == "__main__":
    main()
