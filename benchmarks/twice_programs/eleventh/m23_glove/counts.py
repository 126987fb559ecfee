"""Vocabulary and co-occurrence matrix."""
from collections import Counter

import numpy as np


class Vocabulary:
    def __init__(self, sentences, min_count=1):
        counts = Counter(w for s in sentences for w in s)
        self.words = sorted((w for w, c in counts.items() if c >= min_count), key=lambda w: (-counts[w], w))
        self.index = {w: i for i, w in enumerate(self.words)}

    def __len__(self):
        return len(self.words)

    def encode(self, sentence):
        return [self.index[w] for w in sentence if w in self.index]


def cooccurrence(sentences, vocab, window=4):
    """Symmetric counts, weighted with the inverse distance."""
    m = np.zeros((len(vocab), len(vocab)))
    for sentence in sentences:
        ids = vocab.encode(sentence)
        for i, a in enumerate(ids):
            for k in range(1, window + 1):
                if i + k < len(ids):
                    b = ids[i + k]
                    m[a, b] += 1.0 / k
                    m[b, a] += 1.0 / k
    return m
