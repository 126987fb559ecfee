"""Train an embedding bag with a multi-label output by stochastic gradient steps."""
import argparse
import time

import numpy as np

from reader import Reader


def batches(examples, size):
    for k in range(0, len(examples), size):
        yield examples[k:k + size]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", required=True)
    ap.add_argument("--epochs", type=int, required=True)
    ap.add_argument("--seed", type=int, required=True)
    ap.add_argument("--save", required=True)
    ap.add_argument("--dim", type=int, default=24)
    ap.add_argument("--lr", type=float, default=0.6)
    ap.add_argument("--batch-size", type=int, default=8)
    args = ap.parse_args()
    rng = np.random.default_rng(args.seed)
    reader = Reader(args.data)
    examples = list(reader.examples(args.data + ".train.raw.txt"))
    emb = rng.normal(0, 0.1, size=(reader.n_features, args.dim))
    out = rng.normal(0, 0.1, size=(args.dim, len(reader.targets)))
    bias = np.zeros(len(reader.targets))
    for epoch in range(1, args.epochs + 1):
        t0 = time.perf_counter()
        order = rng.permutation(len(examples))
        total = 0.0
        for rows in batches(order, args.batch_size):
            g_out, g_bias = np.zeros_like(out), np.zeros_like(bias)
            for r in rows:
                name, ids = examples[r]
                h = emb[ids].mean(axis=0)
                prob = 1.0 / (1.0 + np.exp(-(h @ out + bias)))
                want = np.zeros(len(bias))
                want[[reader.targets[t] for t in name.split("|")]] = 1.0
                total -= (want * np.log(prob + 1e-9) + (1 - want) * np.log(1 - prob + 1e-9)).sum()
                delta = (prob - want) / len(rows)
                g_out += np.outer(h, delta)
                g_bias += delta
                np.subtract.at(emb, ids, args.lr * 8 * (out @ delta) / len(ids))
            out -= args.lr * g_out
            bias -= args.lr * g_bias
        print(f"epoch {epoch}: loss {total / len(examples):.8f} ({time.perf_counter() - t0:.2f}s)", flush=True)
    np.savez(args.save, emb=emb, out=out, bias=bias)


if __name__ == "__main__":
    main()
