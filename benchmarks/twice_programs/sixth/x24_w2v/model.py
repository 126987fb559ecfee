import queue
import threading

import numpy as np


class Word2Vec:
    """Skip-gram with negative sampling; several threads share the two weight matrices."""

    def __init__(self, vector_size=24, window=3, negative=4, alpha=0.05, workers=3, seed=1):
        self.size, self.window, self.negative = vector_size, window, negative
        self.alpha, self.workers, self.seed = alpha, workers, seed

    def build_vocab(self, sentences):
        counts = {}
        for s in sentences:
            for w in s:
                counts[w] = counts.get(w, 0) + 1
        self.index = {w: i for i, w in enumerate(sorted(counts, key=lambda w: (-counts[w], w)))}
        freq = np.array([counts[w] for w in self.index], float) ** 0.75
        self.cum = np.cumsum(freq / freq.sum())
        rng = np.random.RandomState(self.seed)
        self.syn0 = (rng.rand(len(self.index), self.size) - 0.5) / self.size
        self.syn1 = np.zeros((len(self.index), self.size))

    def _train_pair(self, center, context, noise):
        targets = np.concatenate([[context], noise])
        labels = np.zeros(len(targets))
        labels[0] = 1.0
        h = self.syn0[center]
        out = self.syn1[targets]
        g = (labels - 1.0 / (1.0 + np.exp(-out @ h))) * self.alpha
        self.syn1[targets] += g[:, None] * h
        self.syn0[center] += g @ out  # cause

    def _train_job(self, job_no, sentences):
        rng = np.random.RandomState(self.seed + 1 + job_no)
        for ids in sentences:
            for pos, center in enumerate(ids):
                lo, hi = max(0, pos - self.window), min(len(ids), pos + self.window + 1)
                for p in range(lo, hi):
                    if p != pos:
                        noise = np.minimum(np.searchsorted(self.cum, rng.rand(self.negative)), len(self.cum) - 1)
                        self._train_pair(center, ids[p], noise)

    def _worker(self, jobs):
        while True:
            job = jobs.get()
            if job is None:
                return
            self._train_job(*job)

    def train(self, sentences, epochs=1, batch=10):
        encoded = [[self.index[w] for w in s] for s in sentences]
        jobs = queue.Queue()
        threads = [threading.Thread(target=self._worker, args=(jobs,)) for _ in range(self.workers)]
        for t in threads:
            t.start()
        number = 0
        for _ in range(epochs):
            for i in range(0, len(encoded), batch):
                jobs.put((number, encoded[i:i + batch]))
                number += 1
        for _ in threads:
            jobs.put(None)
        for t in threads:
            t.join()

    def similarity(self, a, b):
        u, v = self.syn0[self.index[a]], self.syn0[self.index[b]]
        return float(u @ v / (np.linalg.norm(u) * np.linalg.norm(v)))
