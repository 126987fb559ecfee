"""Synthesises the requests of one trace; started as a process of its own for every trace."""
import json
import sys

import numpy as np


def stable_pool(size, seed):
    return np.random.RandomState(seed).randint(0, 500, size)


def content_rng(trace, message, role):
    key = f"{trace}:{message}:{role}"
    return np.random.RandomState(hash(key) & 0xFFFFFFFF)  # cause


def message_tokens(pool, trace, message, role, length):
    rng = content_rng(trace, message, role)
    start = rng.randint(0, len(pool) - length)
    tokens = pool[start:start + length].copy()
    flip = rng.rand(length) < 0.1
    tokens[flip] = rng.randint(0, 500, flip.sum())
    return tokens.tolist()


def main():
    job = json.load(sys.stdin)
    pool = stable_pool(20000, job["prompt_seed"])
    out = []
    for m, (role, length) in enumerate(job["messages"]):
        out.append({"role": role, "tokens": message_tokens(pool, job["trace"], m, role, length)})
    json.dump(out, sys.stdout)


if __name__ == "__main__":
    main()
