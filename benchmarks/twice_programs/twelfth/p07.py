"""Clean a small web corpus with a chain of filters and build a tokenised training shard.

Modelled on https://github.com/HojiChar/HojiChar/pull/92
Documents pass through filters in a pool of processes; the survivors are deduplicated and packed.
"""
import argparse
import hashlib
import json
import logging
import multiprocessing as mp
import random
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("corpus")

WORDS = ("data model train river city music garden report summer winter market paper office "
         "people school energy bridge doctor window letter planet engine forest travel price "
         "simple quick narrow bright heavy early modern local public open small large").split()
BOILERPLATE = ["Click here to subscribe!", "All rights reserved.", "Accept all cookies"]


@dataclass
class CorpusConfig:
    seed: int = 3
    documents: int = 400
    jobs: int = 3
    min_words: int = 30
    max_repetition: float = 0.25
    near_dup_threshold: float = 0.55
    window: int = 64
    vocab_size: int = 60
    out_dir: str = "shard"


@dataclass
class Document:
    text: str
    doc_id: int
    is_rejected: bool = False
    reason: str = ""


def make_documents(cfg):
    rng = random.Random(cfg.seed)
    docs = []
    for i in range(cfg.documents):
        if docs and rng.random() < 0.3:
            words = rng.choice(docs).text.split()
            for _ in range(max(1, len(words) // 25)):
                words[rng.randrange(len(words))] = rng.choice(WORDS)
        else:
            topic = rng.sample(WORDS, 18)
            words = [rng.choice(topic if rng.random() < 0.8 else WORDS)
                     for _ in range(rng.randint(15, 420))]
        if rng.random() < 0.3:
            words.insert(rng.randrange(len(words)), rng.choice(BOILERPLATE))
        docs.append(Document(" ".join(words), i))
    return docs


class Filter:
    def __call__(self, doc):
        return doc if doc.is_rejected else self.apply(doc)


class BoilerplateRemover(Filter):
    pattern = re.compile("|".join(re.escape(b) for b in BOILERPLATE))

    def apply(self, doc):
        doc.text = re.sub(r"\s+", " ", self.pattern.sub(" ", doc.text)).strip()
        return doc


class LengthFilter(Filter):
    def __init__(self, min_words):
        self.min_words = min_words

    def apply(self, doc):
        if len(doc.text.split()) < self.min_words:
            doc.is_rejected, doc.reason = True, "too short"
        return doc


class RepetitionFilter(Filter):
    def __init__(self, limit):
        self.limit = limit

    def apply(self, doc):
        words = doc.text.split()
        grams = Counter(zip(words, words[1:]))
        repeated = sum(c for c in grams.values() if c > 2)
        if repeated / max(len(words), 1) > self.limit:
            doc.is_rejected, doc.reason = True, "repetitive"
        return doc


class Signature(Filter):
    """MinHash over word 3-grams, stored in front of the text."""

    def __init__(self, permutations=12):
        self.permutations = permutations

    def apply(self, doc):
        words = doc.text.split()
        shingles = {" ".join(words[i:i + 3]) for i in range(len(words) - 2)}
        mins = []
        for p in range(self.permutations):
            mins.append(min(hashlib.blake2b(f"{p}{s}".encode(), digest_size=4).hexdigest()
                            for s in shingles))
        doc.signature = mins
        return doc


class Compose:
    def __init__(self, filters):
        self.filters = filters

    def __call__(self, doc):
        for f in self.filters:
            doc = f(doc)
        return doc


def process(docs, pipeline, jobs):
    """Yield documents once they went through the pipeline."""
    with mp.get_context("fork").Pool(jobs) as pool:
        for doc in pool.imap_unordered(pipeline, docs):  # cause
            yield doc


def near_dedup(docs, threshold):
    kept = []
    for doc in docs:
        for other in kept:
            same = sum(a == b for a, b in zip(doc.signature, other.signature))
            if same / len(doc.signature) >= threshold:
                break
        else:
            kept.append(doc)
    return kept


def build_vocab(docs, size):
    counts = Counter(w for d in docs for w in d.text.split())
    return {w: i for i, (w, _) in enumerate(counts.most_common(size))}


def pack(docs, vocab, window):
    stream = []
    for d in docs:
        stream.extend(vocab.get(w, len(vocab)) for w in d.text.split())
        stream.append(len(vocab) + 1)
    return [stream[i:i + window] for i in range(0, len(stream) - window + 1, window)]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--jobs", type=int, default=CorpusConfig.jobs)
    ap.add_argument("--documents", type=int, default=CorpusConfig.documents)
    args = ap.parse_args()
    cfg = CorpusConfig(jobs=args.jobs, documents=args.documents)
    out = Path(cfg.out_dir)
    out.mkdir(exist_ok=True)

    docs = make_documents(cfg)
    pipeline = Compose([BoilerplateRemover(), LengthFilter(cfg.min_words),
                        RepetitionFilter(cfg.max_repetition), Signature()])
    start = time.perf_counter()
    rejected, passed = Counter(), []
    for doc in process(docs, pipeline, cfg.jobs):
        if doc.is_rejected:
            rejected[doc.reason] += 1
        else:
            passed.append(doc)
    log.info("filtered in %.2fs with %d jobs", time.perf_counter() - start, cfg.jobs)

    kept = near_dedup(passed, cfg.near_dup_threshold)
    vocab = build_vocab(kept, cfg.vocab_size)
    windows = pack(kept, vocab, cfg.window)
    with open(out / "cleaned.jsonl", "w") as fh:
        for d in kept:
            fh.write(json.dumps({"id": d.doc_id, "text": d.text}) + "\n")
    (out / "windows.json").write_text(json.dumps(windows))
    (out / "vocab.json").write_text(json.dumps(vocab))

    for reason, n in sorted(rejected.items()):
        print(f"rejected {reason}: {n}")
    print(f"passed {len(passed)}, kept {len(kept)} after near-dedup, vocab {len(vocab)}")
    digest = hashlib.sha256(json.dumps(windows).encode()).hexdigest()[:16]
    print(f"{len(windows)} windows of {cfg.window} tokens, checksum {digest}")


if __name__ == "__main__":
    main()
