"""Match the functions of a query binary against a small reference corpus and
write a match report, using a pool of workers over MinHash signature blocks.

Modelled on: https://github.com/danielplohmann/mcrit/issues/104
"""
import csv
import hashlib
import json
import logging
import multiprocessing
from collections import Counter
from dataclasses import dataclass

import numpy as np

LOG = logging.getLogger("matcher")

NUM_PERM = 128
BLOCK_SIZE = 25
MIN_SCORE = 40.0
FAMILIES = ["merlin", "agent", "loader", "stealer", "botkit", "dropper"]
MERSENNE = (1 << 31) - 1


@dataclass(frozen=True)
class FunctionEntry:
    function_id: int
    family: str
    sample: str
    tokens: tuple


def make_library_code(rng, count):
    """Token sequences that several families share (statically linked code)."""
    return [tuple(int(t) for t in rng.integers(0, 400, size=rng.integers(8, 30)))
            for _ in range(count)]


def mutate(rng, tokens, rate):
    tokens = list(tokens)
    for i in range(len(tokens)):
        if rng.random() < rate:
            tokens[i] = int(rng.integers(0, 400))
    return tuple(tokens)


def make_corpus(seed=77):
    rng = np.random.default_rng(seed)
    library = make_library_code(rng, 400)
    entries = []
    for family in FAMILIES:
        own = make_library_code(rng, 150)
        for tokens in own:
            for version in range(3):
                entries.append((family, f"{family}_{version}", mutate(rng, tokens, 0.03 * (version == 2))))
        for number, tokens in enumerate(library):
            for version in range(3) if number % 2 else range(1):
                entries.append((family, f"{family}_{version}", tokens))
    return [FunctionEntry(i, *e) for i, e in enumerate(entries)]


def make_query(corpus, seed=78):
    rng = np.random.default_rng(seed)
    picks = rng.choice(len(corpus), size=400, replace=False)
    return [FunctionEntry(100000 + n, "query", "query_0",
                          mutate(rng, corpus[int(p)].tokens, 0.04 if n % 3 == 0 else 0.0))
            for n, p in enumerate(sorted(picks))]


def hash_params(seed=1):
    rng = np.random.default_rng(seed)
    return (rng.integers(1, MERSENNE, NUM_PERM, dtype=np.int64),
            rng.integers(0, MERSENNE, NUM_PERM, dtype=np.int64))


def signature(tokens, params):
    a, b = params
    shingles = {tokens[i:i + 3] for i in range(len(tokens) - 2)}
    values = np.array([int(hashlib.md5(repr(s).encode()).hexdigest()[:7], 16)
                       for s in sorted(shingles)], dtype=np.int64)
    return ((values[:, None] * (a % 65521) + b) % MERSENNE).min(axis=0)


_QUERY = {}


def init_worker(query_ids, query_sigs):
    _QUERY.update(ids=query_ids, sigs=query_sigs)


def match_block(block):
    """Compare every query signature with one block of the corpus."""
    query_ids, query_sigs = _QUERY["ids"], _QUERY["sigs"]
    found = []
    for function_id, sig in block:
        scores = (query_sigs == sig).mean(axis=1) * 100.0
        for k in np.flatnonzero(scores >= MIN_SCORE):
            found.append((query_ids[k], function_id, round(float(scores[k]), 2)))
    return found


class PoolMatcher:
    def __init__(self, corpus, workers=4):
        self.params = hash_params()
        self.by_id = {e.function_id: e for e in corpus}
        self.signatures = [(e.function_id, signature(e.tokens, self.params)) for e in corpus]
        self.workers = workers

    def _blocks(self):
        count = len(self.signatures) // BLOCK_SIZE
        for k in range(count):
            yield self.signatures[k::count]

    def match(self, query):
        best, seen = {}, {}
        ids = [q.function_id for q in query]
        sigs = np.stack([signature(q.tokens, self.params) for q in query])
        with multiprocessing.Pool(self.workers, init_worker, (ids, sigs)) as pool:
            for result in pool.imap_unordered(match_block, self._blocks()):  # cause
                for query_id, function_id, score in result:
                    candidate = (function_id, score)
                    seen.setdefault(query_id, []).append(candidate)
                    current = best.get(query_id, candidate)
                    best[query_id] = max([current, candidate], key=lambda x: x[1])
        return best, seen


def write_report(path, query, best, seen, by_id):
    with open(path, "w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["query_function", "matched_function", "family", "sample", "score", "candidates"])
        for q in query:
            if q.function_id in best:
                function_id, score = best[q.function_id]
                e = by_id[function_id]
                writer.writerow([q.function_id, function_id, e.family, e.sample, score, len(seen[q.function_id])])


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    corpus = make_corpus()
    query = make_query(corpus)
    LOG.info("corpus: %d functions, query: %d functions", len(corpus), len(query))
    matcher = PoolMatcher(corpus)
    best, seen = matcher.match(query)
    families = Counter(matcher.by_id[f].family for f, _ in best.values())
    write_report("matches.csv", query, best, seen, matcher.by_id)
    with open("candidates.json", "w") as handle:
        json.dump({str(q): seen[q] for q in sorted(seen)}, handle)
    summary = {
        "matched": len(best),
        "perfect": sum(1 for _, s in best.values() if s == 100.0),
        "families": dict(sorted(families.items())),
    }
    with open("summary.json", "w") as handle:
        json.dump(summary, handle, indent=2, sort_keys=True)
    for family, count in sorted(families.items()):
        print(f"{family:10s} {count:4d}")
    print("attributed to:", max(sorted(families), key=families.get))


if __name__ == "__main__":
    main()
