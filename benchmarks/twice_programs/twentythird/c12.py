"""Search benchmark over a line-oriented document source.

Several indexing threads pull documents from a shared source, analyse them and
add them to an in-memory inverted index. A set of queries is then run against
the index and the top hits are recorded, so that runs of two engine versions can
be compared hit by hit.

Modelled on: https://github.com/mikemccand/luceneutil/issues/186
"""
import heapq
import itertools
import json
import logging
import math
import random
import sys
import threading
import time
from collections import Counter, defaultdict

log = logging.getLogger("bench")

N_DOCS = 3600
N_THREADS = 4
TOP_N = 8
SUFFIXES = ("ing", "ed", "es", "s", "ly", "er")


class LineFileDocs:
    """Source of documents: title, date and a body of Zipf-distributed terms."""

    def __init__(self, n_docs, seed):
        rng = random.Random(seed)
        stems = ["".join(rng.choice("bcdfglmnprst") + rng.choice("aeiou") for _ in range(rng.randint(1, 3)))
                 for _ in range(900)]
        self.vocabulary = sorted(set(s + rng.choice(("", "", "ing", "ed", "s", "ly")) for s in stems))
        weights = [1 / (rank + 2) for rank in range(len(self.vocabulary))]
        order = self.vocabulary[:]
        rng.shuffle(order)
        self.lines = []
        for i in range(n_docs):
            body = rng.choices(order, weights, k=60)
            day = 1 + i % 28
            self.lines.append(f"Article {i:05d}\t2022-07-{day:02d}\t{' '.join(body)}")
        self._position = itertools.count()
        self._ids = itertools.count()
        self._lock = threading.Lock()

    def next_line(self):
        with self._lock:
            position = next(self._position)
        return self.lines[position] if position < len(self.lines) else None

    def next_doc(self):
        """Parse the next line into a document, or return None at the end."""
        line = self.next_line()
        if line is None:
            return None
        title, date, body = line.split("\t")
        terms = Counter(analyze(body))
        doc_id = next(self._ids)  # cause
        return {"id": doc_id, "title": title, "date": date, "terms": terms}


def stem(token):
    for suffix in SUFFIXES:
        if token.endswith(suffix) and len(token) - len(suffix) >= 3:
            return token[:-len(suffix)]
    return token


def analyze(text):
    tokens = [stem(t) for t in text.lower().split()]
    shingles = [a + "_" + b for a, b in zip(tokens, tokens[1:])]
    checksum = 0
    for _ in range(6):
        for token in tokens:
            for ch in token:
                checksum = (checksum * 31 + ord(ch)) & 0xFFFFFFFF
    return tokens + shingles


class InvertedIndex:
    def __init__(self):
        self.postings = defaultdict(dict)
        self.stored = {}
        self.lengths = {}
        self.lock = threading.Lock()

    def add(self, doc):
        with self.lock:
            self.stored[doc["id"]] = (doc["title"], doc["date"])
            self.lengths[doc["id"]] = sum(doc["terms"].values())
            for term, count in doc["terms"].items():
                self.postings[term][doc["id"]] = count

    def search(self, terms, n):
        """BM25 without length pivot; equal scores are ordered by document id."""
        scores = defaultdict(float)
        total = len(self.stored)
        for term in terms:
            posting = self.postings.get(term, {})
            idf = math.log(1 + (total - len(posting) + 0.5) / (len(posting) + 0.5))
            for doc_id in sorted(posting):
                tf = posting[doc_id]
                scores[doc_id] += idf * tf * 2.2 / (tf + 1.2)
        return heapq.nsmallest(n, scores.items(), key=lambda item: (-round(item[1], 9), item[0]))


class IndexThread(threading.Thread):
    def __init__(self, source, index):
        super().__init__(daemon=True)
        self.source, self.index = source, index
        self.count = 0

    def run(self):
        while True:
            doc = self.source.next_doc()
            if doc is None:
                return
            self.index.add(doc)
            self.count += 1


def build_index(source, n_threads):
    index = InvertedIndex()
    threads = [IndexThread(source, index) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.info("threads indexed %s documents", [t.count for t in threads])
    return index


def make_queries(vocabulary, n, seed):
    rng = random.Random(seed)
    kinds = {"Term": 1, "OrHighMed": 2, "Or3": 3}
    queries = []
    for i in range(n):
        kind = list(kinds)[i % len(kinds)]
        queries.append((kind, [stem(t) for t in rng.sample(vocabulary, kinds[kind])]))
    return queries


def run_queries(index, queries):
    results = []
    for kind, terms in queries:
        hits = index.search(terms, TOP_N)
        results.append({
            "query": f"{kind}: {' '.join(terms)}",
            "hits": [{"id": d, "title": index.stored[d][0], "score": round(s, 6)} for d, s in hits],
        })
    return results


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(message)s")
    source = LineFileDocs(N_DOCS, seed=186)
    started = time.perf_counter()
    index = build_index(source, N_THREADS)
    log.info("indexed in %.2f s", time.perf_counter() - started)
    queries = make_queries(source.vocabulary, 45, seed=1)
    results = run_queries(index, queries)
    with open("results.json", "w") as f:
        json.dump(results, f, indent=1)
    with open("docids.tsv", "w") as f:
        for doc_id in sorted(index.stored):
            f.write(f"{doc_id}\t{index.stored[doc_id][0]}\n")
    print(f"{len(index.stored)} documents, {len(index.postings)} terms")
    for result in results[:6]:
        print(result["query"], "->", ", ".join(f"{h['id']}:{h['title'].split()[1]}" for h in result["hits"][:5]))


if __name__ == "__main__":
    main()
