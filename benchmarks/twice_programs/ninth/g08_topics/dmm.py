"""Collapsed Gibbs sampling for the Dirichlet multinomial mixture (short text clustering)."""
import math

import numpy as np
from numba import njit


@njit(cache=False)
def log_cond(doc, start, stop, k, n_docs, n_words, n_kw, alpha, beta, vocab):
    out = math.log(n_docs[k] + alpha)
    seen = 0
    for a in range(start, stop):
        w = doc[a]
        rep = 0
        for b in range(start, a):
            if doc[b] == w:
                rep += 1
        out += math.log(n_kw[k, w] + beta + rep)
        out -= math.log(n_words[k] + vocab * beta + seen)
        seen += 1
    return out


@njit(cache=False)
def pick(logp):
    m = logp.max()
    p = np.exp(logp - m)
    cum = np.cumsum(p)
    u = np.random.random() * cum[-1]  # cause
    return min(np.searchsorted(cum, u), len(logp) - 1)


@njit(cache=False)
def sweep(words, offsets, z, n_docs, n_words, n_kw, alpha, beta):
    """One pass over all documents; returns how many of them moved."""
    clusters, vocab = n_kw.shape
    logp = np.empty(clusters)
    moved = 0
    for d in range(len(offsets) - 1):
        s, e = offsets[d], offsets[d + 1]
        old = z[d]
        n_docs[old] -= 1
        n_words[old] -= e - s
        for a in range(s, e):
            n_kw[old, words[a]] -= 1
        for k in range(clusters):
            logp[k] = log_cond(words, s, e, k, n_docs, n_words, n_kw, alpha, beta, vocab)
        new = pick(logp)
        z[d] = new
        n_docs[new] += 1
        n_words[new] += e - s
        for a in range(s, e):
            n_kw[new, words[a]] += 1
        if new != old:
            moved += 1
    return moved


class DMM:
    def __init__(self, n_components, alpha=0.1, beta=0.1, n_iter=30, random_state=0):
        self.k, self.alpha, self.beta, self.n_iter = n_components, alpha, beta, n_iter
        self.rng = np.random.default_rng(random_state)

    def fit(self, words, offsets, vocab, callback=None):
        n = len(offsets) - 1
        z = self.rng.integers(0, self.k, n)
        n_docs = np.bincount(z, minlength=self.k).astype(np.float64)
        n_kw = np.zeros((self.k, vocab))
        owner = np.repeat(z, np.diff(offsets))
        np.add.at(n_kw, (owner, words), 1)
        n_words = n_kw.sum(1)
        for it in range(self.n_iter):
            moved = sweep(words, offsets, z, n_docs, n_words, n_kw, self.alpha, self.beta)
            if callback is not None:
                callback(it, moved, int((n_docs > 0).sum()))
        self.labels_, self.counts_ = z, n_kw
        return self

    def topics(self):
        return (self.counts_ + self.beta) / (self.counts_ + self.beta).sum(1, keepdims=True)
