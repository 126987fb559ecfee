"""Collapsed Gibbs sampling with seed words for some of the topics."""
import logging
import random

import numpy as np

logger = logging.getLogger("guidedlda")


class GuidedTopics:
    def __init__(self, n_topics, n_iter=20, alpha=0.1, eta=0.01, random_state=None, refresh=5):
        self.n_topics = n_topics
        self.n_iter = n_iter
        self.alpha = alpha
        self.eta = eta
        self.refresh = refresh
        self.random_state = random_state
        self.rng = np.random.RandomState(random_state)
        self._rands = self.rng.rand(1024 ** 2 // 8)

    def fit(self, corpus, seed_topics=None, seed_confidence=0.0):
        self._initialize(corpus, seed_topics or {}, seed_confidence)
        self.loglikelihoods_ = []
        for it in range(self.n_iter):
            if it % self.refresh == 0:
                value = self.loglikelihood()
                self.loglikelihoods_.append(value)
                logger.info("<%d> log likelihood: %.0f", it, value)
            self.rng.shuffle(self._rands)
            self._sample_topics()
        self.components_ = self.nzw + self.eta
        self.components_ = self.components_ / self.components_.sum(axis=1, keepdims=True)
        self.doc_topic_ = self.ndz + self.alpha
        self.doc_topic_ = self.doc_topic_ / self.doc_topic_.sum(axis=1, keepdims=True)
        return self

    def _initialize(self, corpus, seed_topics, seed_confidence):
        self.ds, self.ws = corpus.tokens()
        n_words, n_docs = len(corpus.vocabulary), len(corpus.documents)
        self.nzw = np.zeros((self.n_topics, n_words))
        self.ndz = np.zeros((n_docs, self.n_topics))
        self.nz = np.zeros(self.n_topics)
        self.zs = np.empty(len(self.ws), dtype=int)
        for i, (d, w) in enumerate(zip(self.ds, self.ws)):
            if w in seed_topics and random.random() < seed_confidence:  # cause
                z = seed_topics[w]
            else:
                z = i % self.n_topics
            self.zs[i] = z
            self.nzw[z, w] += 1
            self.ndz[d, z] += 1
            self.nz[z] += 1

    def _sample_topics(self):
        n_words = self.nzw.shape[1]
        n_rand = len(self._rands)
        for i, (d, w) in enumerate(zip(self.ds, self.ws)):
            z = self.zs[i]
            self.nzw[z, w] -= 1
            self.ndz[d, z] -= 1
            self.nz[z] -= 1
            p = (self.nzw[:, w] + self.eta) / (self.nz + self.eta * n_words) * (self.ndz[d] + self.alpha)
            cumulative = p.cumsum()
            z = int(np.searchsorted(cumulative, self._rands[i % n_rand] * cumulative[-1]))
            self.zs[i] = z
            self.nzw[z, w] += 1
            self.ndz[d, z] += 1
            self.nz[z] += 1

    def loglikelihood(self):
        phi = (self.nzw + self.eta) / (self.nz[:, None] + self.eta * self.nzw.shape[1])
        theta = self.ndz + self.alpha
        theta = theta / theta.sum(axis=1, keepdims=True)
        return float(np.log(np.einsum("ik,ki->i", theta[self.ds], phi[:, self.ws])).sum())
