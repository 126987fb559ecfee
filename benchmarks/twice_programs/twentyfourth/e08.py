"""Offline batch generation with a small decoder and a paged cache.

Builds a decoder with fixed weights, serves a list of prompts greedily through
the cache of e08_pkg and writes completions and log probabilities.

Modelled on: https://github.com/vllm-project/vllm/issues/940
"""
import json
import logging
import os
import sys
import time

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from e08_pkg.cache_engine import CacheEngine
from e08_pkg.model import TinyDecoder

log = logging.getLogger("serve")
ALPHABET = "abcdefghijklmnopqrstuvwxyz .,"
PROMPTS = ["the cache of the model", "a block holds keys", "once upon a time", "results of the run",
           "tokens are written", "every request", "batch number nine", "the end of it"]


def encode(text):
    return [ALPHABET.index(ch) for ch in text]


def decode(tokens):
    return "".join(ALPHABET[t] for t in tokens)


def generate(model, cache, request_id, prompt, n_new=40):
    """Feed the prompt, then extend it with the most likely tokens."""
    tokens = encode(prompt)
    cache.reserve(request_id, len(tokens) + n_new)
    total = 0.0
    with torch.no_grad():
        for position, token in enumerate(tokens):
            logits = model(token, cache, request_id, position)
        for step in range(n_new):
            logp = torch.log_softmax(logits, dim=-1)
            token = int(torch.argmax(logp))
            total += float(logp[token])
            tokens.append(token)
            logits = model(token, cache, request_id, len(tokens) - 1)
    cache.release(request_id)
    return decode(tokens[-n_new:]), total


def warm_up(model):
    """One pass with a small cache of its own, to load the kernels."""
    small = CacheEngine(len(model.blocks), 4, 8, 4, 16)
    generate(model, small, "warm", "abc", n_new=5)


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    torch.manual_seed(940)
    torch.set_num_threads(1)
    model = TinyDecoder(len(ALPHABET)).eval()
    warm_up(model)
    cache = CacheEngine(n_layers=len(model.blocks), n_blocks=12, block_size=16, n_heads=4, head_dim=16)
    results = []
    for number, prompt in enumerate(PROMPTS):
        start = time.perf_counter()
        text, score = generate(model, cache, number, prompt)
        log.info("request %d took %.3f s", number, time.perf_counter() - start)
        results.append({"prompt": prompt, "completion": text, "logprob": round(score, 5)})
        print("%-24s -> %s  (%.5f)" % (prompt, text, score))
    with open("completions.json", "w") as handle:
        json.dump(results, handle, indent=1)
    print("mean log probability %.6f" % (sum(r["logprob"] for r in results) / len(results)))


if __name__ == "__main__":
    main()
