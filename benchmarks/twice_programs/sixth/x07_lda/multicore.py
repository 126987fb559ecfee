import multiprocessing as mp

import numpy as np

from .corpus import chunks
from .worker import expect_log, worker_loop


class MulticoreLda:
    """Online LDA; chunks go to worker processes, this process does the M-step."""

    def __init__(self, topics, vocab, workers=2, alpha=0.2, eta=0.05, decay=0.6, random_state=0):
        rng = np.random.RandomState(random_state)
        self.lam = rng.gamma(100.0, 0.01, (topics, vocab))
        self.alpha, self.eta, self.decay = alpha, eta, decay
        self.updates = 0
        self.workers = workers

    def blend(self, stats, scale):
        self.updates += 1
        rho = (2.0 + self.updates) ** -self.decay
        self.lam = (1 - rho) * self.lam + rho * (self.eta + scale * stats)

    def fit(self, matrix, passes=2, size=20, callback=None):
        ctx = mp.get_context("fork")
        jobs, results = ctx.Queue(), ctx.Queue()
        procs = [ctx.Process(target=worker_loop, args=(jobs, results, self.alpha), daemon=True)
                 for _ in range(self.workers)]
        for p in procs:
            p.start()
        scale = len(matrix) / size
        for epoch in range(passes):
            pending = list(chunks(matrix, size))
            total = 0.0
            while pending:
                group, pending = pending[:4], pending[4:]
                for index, block in group:
                    jobs.put((index, block, self.lam))
                finished = [results.get() for _ in group]  # cause
                for _, stats, bound in finished:
                    self.blend(stats, scale)
                    total += bound
            if callback:
                callback(epoch, total)
        for _ in procs:
            jobs.put(None)
        for p in procs:
            p.join()
        return self

    def topics(self, top=6):
        mean = np.exp(expect_log(self.lam))
        return [[int(w) for w in np.argsort(-row, kind="stable")[:top]] for row in mean]
