"""Term statistics of a document collection with a pool of threads.

Documents are made from a small grammar, tokenised and counted by a number of
threads that feed one index. From the index come document frequencies, inverse
frequencies, collocations and a list of keywords for each section.

Modelled on: https://stackoverflow.com/questions/39143671
"""
import json
import logging
import math
import queue
import random
import re
import threading
from collections import defaultdict

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(threadName)s %(message)s")
log = logging.getLogger("terms")

SECTIONS = ["economy", "science", "sport"]
COMMON = "the of and to in a is that for on was with as by at from it this be are".split()
TOPIC = {
    "economy": "market bank price trade growth rate fund budget tax profit loss export wage".split(),
    "science": "cell model energy theory particle gene star climate data sample probe brain".split(),
    "sport": "team match goal coach season score league player final club race medal win".split(),
}
TOKEN = re.compile(r"[a-z]+")


def make_documents(n, seed):
    rng = random.Random(seed)
    docs = []
    for k in range(n):
        section = rng.choice(SECTIONS)
        words = []
        for _ in range(rng.randint(150, 260)):
            pool = COMMON if rng.random() < 0.6 else TOPIC[section]
            word = pool[min(int(rng.expovariate(0.35)), len(pool) - 1)]
            words.append(word.capitalize() if rng.random() < 0.05 else word)
        docs.append({"id": k, "section": section, "text": " ".join(words) + "."})
    return docs


class TermIndex:
    """Counts of terms over the whole collection and for each section."""

    def __init__(self):
        self.counts = {}
        self.by_document = {}

    def add_term(self, key):
        self.counts[key] = self.counts.get(key, 0) + 1  # cause

    def add_document(self, doc):
        terms = tokenize(doc["text"])
        for term in terms:
            self.add_term((doc["section"], term))
        self.by_document[doc["id"]] = frozenset(terms)

    def total(self):
        return sum(self.counts.values())

    def term_count(self, term):
        return sum(self.counts.get((s, term), 0) for s in SECTIONS)

    def vocabulary(self):
        return sorted({term for _, term in self.counts})


def tokenize(text):
    return TOKEN.findall(text.lower())


class Indexer:
    def __init__(self, index, n_threads):
        self.index = index
        self.jobs = queue.Queue()
        self.threads = [threading.Thread(target=self.work, name=f"indexer-{k}")
                        for k in range(n_threads)]

    def work(self):
        done = 0
        while True:
            doc = self.jobs.get()
            if doc is None:
                break
            self.index.add_document(doc)
            done += 1
        log.info("%d documents", done)

    def run(self, docs):
        for doc in docs:
            self.jobs.put(doc)
        for _ in self.threads:
            self.jobs.put(None)
        for t in self.threads:
            t.start()
        for t in self.threads:
            t.join()


def inverse_frequency(index):
    df = defaultdict(int)
    for doc_id in sorted(index.by_document):
        for term in index.by_document[doc_id]:
            df[term] += 1
    n = len(index.by_document)
    return {term: math.log(n / df[term]) for term in sorted(df)}


def keywords(index, idf, section, k=6):
    total = sum(c for (s, _), c in index.counts.items() if s == section)
    scored = []
    for term in index.vocabulary():
        tf = index.counts.get((section, term), 0) / total
        scored.append((tf * idf[term], term))
    scored.sort(key=lambda st: (-st[0], st[1]))
    return scored[:k]


def main():
    docs = make_documents(4500, seed=12)
    log.info("%d documents made", len(docs))
    index = TermIndex()
    Indexer(index, n_threads=4).run(docs)
    idf = inverse_frequency(index)
    report = {"documents": len(docs), "tokens": index.total(), "vocabulary": len(index.vocabulary()),
              "keywords": {}}
    print("documents:", len(docs))
    print("tokens:", index.total())
    print("vocabulary:", len(index.vocabulary()))
    for section in SECTIONS:
        top = keywords(index, idf, section)
        report["keywords"][section] = [[t, round(s, 9)] for s, t in top]
        print(f"{section:8s}", ", ".join(f"{t} {s:.6f}" for s, t in top[:4]))
    with open("terms.tsv", "w") as fh:
        for term in index.vocabulary():
            per_section = "\t".join(str(index.counts.get((s, term), 0)) for s in SECTIONS)
            fh.write(f"{term}\t{index.term_count(term)}\t{per_section}\t{idf[term]:.6f}\n")
    with open("report.json", "w") as fh:
        json.dump(report, fh, indent=2)
    most = sorted(index.vocabulary(), key=lambda t: (-index.term_count(t), t))[:5]
    print("most frequent:", ", ".join(f"{t}={index.term_count(t)}" for t in most))


if __name__ == "__main__":
    main()
