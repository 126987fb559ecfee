"""Vocabularies and examples."""
import numpy as np


def load_histogram(path):
    with open(path) as fh:
        return {line.split()[0]: k for k, line in enumerate(fh) if line.strip()}


class Reader:
    def __init__(self, prefix):
        self.words = load_histogram(prefix + ".histo.ori")
        self.paths = load_histogram(prefix + ".histo.node")
        self.targets = load_histogram(prefix + ".histo.tgt")
        self.n_features = 2 * len(self.words) + len(self.paths)

    def encode(self, parts):
        w, p = len(self.words), len(self.paths)
        ids = []
        for context in parts:
            a, path, b = context.split(",")
            if a in self.words:
                ids.append(self.words[a])
            if b in self.words:
                ids.append(w + self.words[b])
            if path in self.paths:
                ids.append(2 * w + self.paths[path])
        return np.array(ids, dtype=np.int64)

    def examples(self, path):
        with open(path) as fh:
            for line in fh:
                name, *parts = line.split()
                yield name, self.encode(parts)
