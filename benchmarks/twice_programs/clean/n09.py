"""Prepare a language-model corpus with multiprocessing and train a byte bigram baseline on it.

 1. documents are generated / "downloaded" into shards
 2. a pool of workers cleans, tokenizes and packs every shard to .npy
 3. shards are merged in order into train.bin / val.bin, with meta.json
"""
import argparse
import collections
import json
import multiprocessing as mp
import os
import re
import sys
import time
from functools import partial

import numpy as np
from tqdm import tqdm

WORDS = ("the of and to in a is that it was for on are with as his they be at one have this from "
         "or had by hot but some what there we can out other were all your when up use word how "
         "said an each she which do their time if will way about many then them would write").split()
EOT = 0


def log(msg):
    stamp = time.strftime("%H:%M:%S")
    print(f"[{stamp}] {msg}", flush=True)


def make_document(rng):
    n_sent = int(rng.integers(3, 9))
    sents = []
    for _ in range(n_sent):
        n = int(rng.integers(4, 15))
        weights = 1.0 / np.arange(1, len(WORDS) + 1)
        toks = rng.choice(WORDS, size=n, p=weights / weights.sum())
        sents.append(" ".join(toks).capitalize() + ".")
    text = "  ".join(sents)
    if rng.random() < 0.1:
        text += " <a href='http://example.com/%d'>link</a>" % rng.integers(1000)
    return text


def clean(text):
    text = re.sub(r"<[^>]+>", " ", text)
    return re.sub(r"\s+", " ", text).strip().lower()


def process_shard(shard, n_docs, seed, out_dir):
    """Runs in a worker; every shard has its own seed sequence so the pool size does not matter."""
    t0 = time.perf_counter()
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(shard,)))
    counter = collections.Counter()
    tokens, chars = [], 0
    seen, dropped = set(), 0
    for _ in range(n_docs):
        doc = clean(make_document(rng))
        if doc in seen or len(doc) < 40:
            dropped += 1
            continue
        seen.add(doc)
        counter.update(re.findall(r"[a-z]+", doc))
        chars += len(doc)
        tokens.extend(doc.encode("ascii"))
        tokens.append(EOT)
    path = os.path.join(out_dir, f"shard_{shard:03d}.npy")
    np.save(path, np.array(tokens, dtype=np.uint16))
    return {"shard": shard, "docs": n_docs - dropped, "dropped": dropped, "chars": chars,
            "tokens": len(tokens), "counter": counter, "path": path, "pid": os.getpid(),
            "seconds": time.perf_counter() - t0}


def bigram_nll(train, val, alpha=0.5):
    counts = np.full((128, 128), alpha)
    np.add.at(counts, (train[:-1], train[1:]), 1)
    logp = np.log(counts / counts.sum(1, keepdims=True))
    return float(-logp[val[:-1], val[1:]].mean())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--shards", type=int, default=8)
    ap.add_argument("--docs-per-shard", type=int, default=150)
    ap.add_argument("--workers", type=int, default=3)
    ap.add_argument("--seed", type=int, default=5)
    ap.add_argument("--out", default="data")
    args = ap.parse_args()
    os.makedirs(os.path.join(args.out, "shards"), exist_ok=True)
    log(f"preparing {args.shards} shards with {args.workers} workers (main pid {os.getpid()})")

    start = time.time()
    work = partial(process_shard, n_docs=args.docs_per_shard, seed=args.seed,
                   out_dir=os.path.join(args.out, "shards"))
    stats = []
    with mp.get_context("spawn").Pool(args.workers) as pool:
        for s in tqdm(pool.imap(work, range(args.shards)), total=args.shards, unit="shard",
                      file=sys.stderr):
            log(f"shard {s['shard']:03d}: {s['docs']} docs, {s['tokens']} tokens "
                f"(worker {s['pid']}, {s['seconds']:.2f}s)")
            stats.append(s)
    elapsed = time.time() - start

    arrays = [np.load(s["path"]) for s in stats]
    order = np.random.default_rng(args.seed).permutation(len(arrays))
    n_val = max(1, len(arrays) // 8)
    val = np.concatenate([arrays[i] for i in order[:n_val]])
    train = np.concatenate([arrays[i] for i in order[n_val:]])
    train.tofile(os.path.join(args.out, "train.bin"))
    val.tofile(os.path.join(args.out, "val.bin"))

    total = collections.Counter()
    for s in stats:
        total.update(s.pop("counter"))
    vocab = sorted(total.items(), key=lambda kv: (-kv[1], kv[0]))
    with open(os.path.join(args.out, "vocab.tsv"), "w") as f:
        f.writelines(f"{w}\t{c}\n" for w, c in vocab)

    n_tokens = sum(s["tokens"] for s in stats)
    print(f"total tokens: {n_tokens:,}  train: {len(train):,}  val: {len(val):,}")
    print("top words:", ", ".join(f"{w}={c}" for w, c in vocab[:8]))
    nll = bigram_nll(train, val)
    print(f"bigram val loss: {nll:.6f} nats/byte, ppl {np.exp(nll):.4f}")
    log(f"tokenized {n_tokens / elapsed / 1e3:.1f}k tokens/s, total time {elapsed:.2f}s")
    meta = {"created": time.ctime(), "args": vars(args), "train_tokens": len(train),
            "val_tokens": len(val), "vocab_size": len(vocab), "val_loss": nll,
            "elapsed_s": elapsed,
            "shards": [{k: s[k] for k in ("shard", "docs", "dropped", "chars", "tokens", "seconds")}
                       for s in stats]}
    with open(os.path.join(args.out, "meta.json"), "w") as f:
        json.dump(meta, f, indent=2)


if __name__ == "__main__":
    main()
