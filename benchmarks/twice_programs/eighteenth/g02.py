"""Build a small full-text index over a folder of papers and answer queries from it.

Papers are parsed, split into overlapping chunks and indexed (BM25).  The index
lives in a folder of its own, named after the settings it was built with, so
that changed settings give a new index and old ones stay usable.

Modelled on: https://github.com/Future-House/paper-qa/pull/1262
"""
import collections
import dataclasses
import hashlib
import json
import logging
import math
import pathlib
import random
import re
from typing import Callable

logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
log = logging.getLogger("paperindex")

PAPERS = pathlib.Path("papers")
INDEXES = pathlib.Path("indexes")

TOPICS = {
    "cells": "membrane receptor protein ligand binding assay kinase signalling expression mutant".split(),
    "learning": "gradient network layer loss training dropout attention embedding optimiser batch".split(),
    "climate": "ocean aerosol radiative forcing cloud temperature anomaly ensemble precipitation carbon".split(),
}
COMMON = "we show that the results of our method are with and for a model data analysis study".split()


def write_papers(n=260, seed=3):
    """Stand-in corpus: papers of one topic each."""
    rng = random.Random(seed)
    PAPERS.mkdir(exist_ok=True)
    for i in range(n):
        topic = list(TOPICS)[i % len(TOPICS)]
        words = []
        for _ in range(rng.randint(250, 500)):
            pool = TOPICS[topic] if rng.random() < 0.45 else COMMON
            words.append(rng.choice(pool))
        lines = [" ".join(words[k : k + 12]) for k in range(0, len(words), 12)]
        (PAPERS / f"paper_{i:03d}.txt").write_text("\n".join(lines) + "\n")


def parse_text(path):
    return path.read_text()


def parse_title_page(path):
    return "\n".join(path.read_text().splitlines()[:8])


@dataclasses.dataclass
class ParsingSettings:
    chunk_size: int = 60
    overlap: int = 15
    parse: Callable = parse_text


@dataclasses.dataclass
class Settings:
    embedding: str = "sparse"
    k1: float = 1.4
    b: float = 0.75
    parsing: ParsingSettings = dataclasses.field(default_factory=ParsingSettings)

    def index_name(self):
        """Name of the index for these settings."""
        segments = [
            str(PAPERS),
            self.embedding,
            str(self.k1),
            str(self.b),
            str(self.parsing.chunk_size),
            str(self.parsing.overlap),
            str(self.parsing.parse),  # cause
        ]
        digest = hashlib.md5("|".join(segments).encode()).hexdigest()
        return f"pqa_index_{digest}"


def tokens(text):
    return re.findall(r"[a-z]+", text.lower())


def chunks(words, size, overlap):
    step = size - overlap
    for start in range(0, max(1, len(words) - overlap), step):
        yield start, words[start : start + size]


class Index:
    def __init__(self, settings):
        self.settings = settings
        self.name = settings.index_name()
        self.docs = []
        self.frequency = collections.Counter()

    @property
    def folder(self):
        return INDEXES / self.name

    def build(self, folder):
        parsing = self.settings.parsing
        for path in sorted(folder.glob("*.txt")):
            words = tokens(parsing.parse(path))
            for start, part in chunks(words, parsing.chunk_size, parsing.overlap):
                counts = collections.Counter(part)
                self.docs.append({"id": f"{path.stem}:{start}", "length": len(part), "counts": counts})
                self.frequency.update(counts.keys())
        log.info("indexed %d chunks", len(self.docs))

    def save(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / "chunks.jsonl", "w") as handle:
            for doc in self.docs:
                row = dict(doc, counts=dict(sorted(doc["counts"].items())))
                handle.write(json.dumps(row) + "\n")
        manifest = {"name": self.name, "chunks": len(self.docs), "terms": len(self.frequency)}
        (self.folder / "manifest.json").write_text(json.dumps(manifest, indent=1))

    def search(self, query, top=5):
        k1, b = self.settings.k1, self.settings.b
        average = sum(d["length"] for d in self.docs) / len(self.docs)
        scored = []
        for doc in self.docs:
            score = 0.0
            for term in tokens(query):
                tf = doc["counts"].get(term, 0)
                if not tf:
                    continue
                df = self.frequency[term]
                idf = math.log(1 + (len(self.docs) - df + 0.5) / (df + 0.5))
                score += idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * doc["length"] / average))
            scored.append((-score, doc["id"]))
        scored.sort()
        return [(name, round(-negative, 4)) for negative, name in scored[:top]]


QUERIES = [
    "kinase signalling in mutant cells",
    "dropout and attention in a network",
    "aerosol forcing and precipitation",
]


def main():
    write_papers()
    index = Index(Settings())
    index.build(PAPERS)
    index.save()
    answers = {query: index.search(query) for query in QUERIES}
    pathlib.Path("answers.json").write_text(json.dumps({"index": index.name, "answers": answers}, indent=1))
    print(f"index {index.name}")
    for query, hits in answers.items():
        print(f"{query!r}:")
        for name, score in hits:
            print(f"    {name:16s} {score:.4f}")


if __name__ == "__main__":
    main()
