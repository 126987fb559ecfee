"""Tokenize a text corpus into fixed-size binary shards with a process pool."""
import argparse
import json
import multiprocessing as mp
import os
import re
import time
from collections import Counter
from pathlib import Path

import numpy as np
from faker import Faker
from tqdm import tqdm

SPECIAL = ["<pad>", "<unk>", "<eot>"]
TOKEN_RE = re.compile(r"[a-z]+|[0-9]|[^\sa-z0-9]")
_VOCAB = None


def generate_corpus(path, n_files, docs_per_file, seed):
    """Writes jsonl files, each from its own seeded Faker."""
    path.mkdir(parents=True, exist_ok=True)
    files = []
    for i in range(n_files):
        fake = Faker()
        fake.seed_instance(seed + i)
        f = path / f"part-{i:03d}.jsonl"
        with f.open("w") as out:
            for d in range(docs_per_file):
                doc = {"id": f"{i:03d}-{d:05d}", "title": fake.sentence(nb_words=5),
                       "text": fake.paragraph(nb_sentences=5 + (d * 7 + i) % 6)}
                out.write(json.dumps(doc) + "\n")
        files.append(f)
    return files


def tokenize(text):
    return TOKEN_RE.findall(text.lower())


def count_file(path):
    t0 = time.time()
    c, n = Counter(), 0
    with open(path) as f:
        for line in f:
            doc = json.loads(line)
            c.update(tokenize(doc["title"] + "\n" + doc["text"]))
            n += 1
    print(f"[worker {os.getpid()}] counted {path.name}: {n} docs, {sum(c.values())} tokens in {time.time()-t0:.3f}s",
          flush=True)
    return path.name, c


def build_vocab(counter, size):
    items = sorted(counter.items(), key=lambda kv: (-kv[1], kv[0]))[: size - len(SPECIAL)]
    return {t: i for i, t in enumerate(SPECIAL + [t for t, _ in items])}


def init_worker(vocab):
    global _VOCAB
    _VOCAB = vocab


def encode_file(path):
    unk, eot = _VOCAB["<unk>"], _VOCAB["<eot>"]
    ids, n_unk = [], 0
    with open(path) as f:
        for line in f:
            doc = json.loads(line)
            toks = [_VOCAB.get(t, unk) for t in tokenize(doc["title"] + "\n" + doc["text"])]
            n_unk += toks.count(unk)
            ids.extend(toks + [eot])
    print(f"[worker {os.getpid()}] encoded {path.name}", flush=True)
    return path.name, np.array(ids, dtype=np.uint16), n_unk


class ShardWriter:
    def __init__(self, out_dir, shard_size):
        self.out_dir, self.shard_size = out_dir, shard_size
        self.buf = np.empty(shard_size, dtype=np.uint16)
        self.fill = self.index = 0
        self.names = []

    def add(self, ids):
        while len(ids):
            take = min(len(ids), self.shard_size - self.fill)
            self.buf[self.fill:self.fill + take] = ids[:take]
            self.fill += take
            ids = ids[take:]
            if self.fill == self.shard_size:
                self.flush()

    def flush(self):
        if self.fill:
            split = "val" if self.index == 0 else "train"
            name = f"corpus_{split}_{self.index:06d}.npy"
            np.save(self.out_dir / name, self.buf[: self.fill])
            self.names.append((name, int(self.fill)))
            self.index, self.fill = self.index + 1, 0


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", type=Path, default=Path("tokenized"))
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--files", type=int, default=10)
    ap.add_argument("--docs", type=int, default=120)
    ap.add_argument("--vocab-size", type=int, default=800)
    ap.add_argument("--shard-size", type=int, default=20_000)
    ap.add_argument("--seed", type=int, default=99)
    args = ap.parse_args()
    t_start = time.time()
    print(f"main pid {os.getpid()}, {args.workers} workers, {mp.cpu_count()} CPUs", flush=True)
    files = generate_corpus(args.out / "raw", args.files, args.docs, args.seed)

    with mp.Pool(args.workers) as pool:
        counts = dict(tqdm(pool.imap_unordered(count_file, files), total=len(files), desc="vocab"))
    total = Counter()
    for name in sorted(counts):
        total.update(counts[name])
    vocab = build_vocab(total, args.vocab_size)
    print(f"vocab {len(vocab)} of {len(total)} types, {sum(total.values()):,} tokens", flush=True)

    writer, n_unk, done = ShardWriter(args.out, args.shard_size), 0, {}
    t_enc = time.time()
    with mp.Pool(args.workers, initializer=init_worker, initargs=(vocab,)) as pool:
        for name, ids, unk in tqdm(pool.imap_unordered(encode_file, files), total=len(files), desc="encode"):
            done[name] = ids
            n_unk += unk
    for name in sorted(done):
        writer.add(done[name])
    writer.flush()
    n_tok = sum(len(v) for v in done.values())
    enc_seconds = time.time() - t_enc

    with open(args.out / "vocab.json", "w") as f:
        json.dump(vocab, f, indent=0)
    stats = {"documents": args.files * args.docs, "tokens": n_tok, "unk_rate": n_unk / n_tok,
             "shards": [{"file": n, "tokens": k} for n, k in writer.names],
             "tokens_per_file": {k: len(done[k]) for k in sorted(done)},
             "top_tokens": sorted(total.items(), key=lambda kv: (-kv[1], kv[0]))[:15],
             "timing": {"encode_sec": round(enc_seconds, 3), "total_sec": round(time.time() - t_start, 3),
                        "tokens_per_sec": round(n_tok / enc_seconds, 1)}}
    with open(args.out / "stats.json", "w") as f:
        json.dump(stats, f, indent=2)
    for n, k in writer.names:
        print(f"{n}: {k:,} tokens")
    print(f"Done: {n_tok:,} tokens, unk {100 * n_unk / n_tok:.2f}%, {n_tok / enc_seconds:,.0f} tok/s")


if __name__ == "__main__":
    main()
