"""Cleaning and deduplication of a web corpus.

Modelled on https://github.com/HojiChar/HojiChar/pull/92
Filters documents in parallel, removes near duplicates and builds corpus statistics.
"""
import argparse
import hashlib
import json
import logging
import multiprocessing as mp
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from faker import Faker
from tqdm import tqdm

log = logging.getLogger("corpus")


@dataclass
class CleanConfig:
    seed: int = 33
    documents: int = 2400
    jobs: int = 2
    shingle: int = 3
    hashes: int = 48
    bands: int = 12
    keep_tokens: int = 60000


@dataclass
class Document:
    text: str
    extras: dict = field(default_factory=dict)
    is_rejected: bool = False


def make_corpus(cfg):
    fake = Faker()
    fake.seed_instance(cfg.seed)
    rng = np.random.default_rng(cfg.seed)
    texts = []
    for _ in range(cfg.documents):
        if texts and rng.random() < 0.35:
            words = texts[int(rng.integers(len(texts)))].split()
            for k in rng.integers(0, len(words), size=int(rng.integers(1, 5))):
                words[int(k)] = fake.word()
            texts.append(" ".join(words))
        else:
            texts.append(fake.paragraph(nb_sentences=int(rng.integers(4, 9))))
    return texts


class Filter:
    def apply(self, doc):
        raise NotImplementedError


class Normalizer(Filter):
    def apply(self, doc):
        doc.text = re.sub(r"\s+", " ", doc.text.lower()).strip()
        return doc


class LengthFilter(Filter):
    def __init__(self, minimum, maximum):
        self.minimum, self.maximum = minimum, maximum

    def apply(self, doc):
        doc.is_rejected |= not self.minimum <= len(doc.text) <= self.maximum
        return doc


class MinHasher(Filter):
    def __init__(self, cfg):
        self.cfg = cfg
        rng = np.random.default_rng(1)
        self.a = rng.integers(1, 2 ** 31, cfg.hashes, dtype=np.uint64) | np.uint64(1)
        self.b = rng.integers(0, 2 ** 31, cfg.hashes, dtype=np.uint64)

    def apply(self, doc):
        words = doc.text.split()
        k = self.cfg.shingle
        grams = {" ".join(words[i:i + k]) for i in range(max(1, len(words) - k + 1))}
        base = np.array([int.from_bytes(hashlib.blake2b(g.encode(), digest_size=4).digest(), "big")
                         for g in sorted(grams)], dtype=np.uint64)
        values = (base[:, None] * self.a + self.b) % np.uint64(4294967291)
        doc.extras["minhash"] = values.min(0)
        return doc


class Compose:
    def __init__(self, filters):
        self.filters = filters

    def __call__(self, text):
        doc = Document(text)
        for f in self.filters:
            doc = f.apply(doc)
            if doc.is_rejected:
                break
        return doc


class Parallel:
    """Runs a filter pipeline over documents with a pool of processes."""

    def __init__(self, compose, jobs):
        self.compose = compose
        self.jobs = jobs

    def imap_apply(self, texts):
        with mp.get_context("fork").Pool(self.jobs) as pool:
            for doc in pool.imap_unordered(self.compose, texts, chunksize=4):  # cause
                yield doc


class Deduplicator:
    def __init__(self, cfg):
        self.rows = cfg.hashes // cfg.bands
        self.bands = cfg.bands
        self.seen = set()

    def is_new(self, signature):
        keys = [(b, signature[b * self.rows:(b + 1) * self.rows].tobytes())
                for b in range(self.bands)]
        if any(k in self.seen for k in keys):
            return False
        self.seen.update(keys)
        return True


def take_tokens(docs, limit):
    kept, total = [], 0
    for doc in docs:
        n = len(doc.text.split())
        if total + n > limit:
            break
        kept.append(doc)
        total += n
    return kept, total


def statistics(docs):
    counts = Counter(w for d in docs for w in d.text.split())
    top = sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))[:15]
    probs = np.array(sorted(counts.values())) / sum(counts.values())
    return {"vocabulary": len(counts), "entropy": round(float(-(probs * np.log2(probs)).sum()), 7),
            "top": top}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--documents", type=int, default=CleanConfig.documents)
    ap.add_argument("--jobs", type=int, default=CleanConfig.jobs)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    cfg = CleanConfig(documents=args.documents, jobs=args.jobs)
    texts = make_corpus(cfg)
    log.info("corpus of %d", len(texts))
    compose = Compose([Normalizer(), LengthFilter(80, 2000), MinHasher(cfg)])
    dedup = Deduplicator(cfg)
    t0 = time.perf_counter()
    unique = []
    for doc in tqdm(Parallel(compose, cfg.jobs).imap_apply(texts), total=len(texts), mininterval=1):
        if not doc.is_rejected and dedup.is_new(doc.extras["minhash"]):
            unique.append(doc)
    log.info("%d unique in %.2f s", len(unique), time.perf_counter() - t0)
    kept, tokens = take_tokens(unique, cfg.keep_tokens)
    pq.write_table(pa.table({"text": [d.text for d in kept]}), "corpus.parquet")
    stats = {"unique": len(unique), "kept": len(kept), "tokens": tokens, **statistics(kept)}
    Path("stats.json").write_text(json.dumps(stats, indent=1))
    print(json.dumps(stats))


if __name__ == "__main__":
    main()
