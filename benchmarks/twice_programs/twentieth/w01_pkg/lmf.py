"""Logistic matrix factorization (Johnson 2014) with AdaGrad row updates."""
import threading

import numpy as np

CHUNK = 8


class LogisticMF:
    def __init__(self, factors=16, iterations=20, learning_rate=1.0, regularization=0.6,
                 neg_prop=20, num_threads=2, random_state=0):
        self.factors = factors
        self.iterations = iterations
        self.learning_rate = learning_rate
        self.regularization = regularization
        self.neg_prop = neg_prop
        self.num_threads = num_threads
        self.random_state = random_state
        self.user_factors = None
        self.item_factors = None

    def fit(self, counts):
        rng = np.random.default_rng(self.random_state)
        n_users, n_items = counts.shape
        self.user_factors = self._init(rng, n_users)
        self.item_factors = self._init(rng, n_items)
        self.user_factors[:, -2] = 1.0
        self.item_factors[:, -1] = 1.0
        self._user_sq = np.zeros_like(self.user_factors)
        self._item_sq = np.zeros_like(self.item_factors)
        self._generators = [np.random.default_rng([self.random_state, t])
                            for t in range(self.num_threads)]
        by_user, by_item = counts.tocsr(), counts.T.tocsr()
        for _ in range(self.iterations):
            self._half_step(by_user, self.user_factors, self.item_factors, self._user_sq, -2)
            self._half_step(by_item, self.item_factors, self.user_factors, self._item_sq, -1)
        return self

    def _init(self, rng, n):
        return rng.normal(0, 0.1, (n, self.factors + 2))

    def _half_step(self, counts, target, other, grad_sq, fixed_column):
        """Update every row of `target` with `other` held fixed."""
        n_rows = counts.shape[0]
        chunks = iter(range(0, n_rows, CHUNK))
        lock = threading.Lock()

        def worker(thread_id):
            rng = self._generators[thread_id]  # cause
            while True:
                with lock:
                    begin = next(chunks, None)  # cause
                if begin is None:
                    return
                for row in range(begin, min(begin + CHUNK, n_rows)):
                    self._update_row(row, counts, target, other, grad_sq, fixed_column, rng)

        threads = [threading.Thread(target=worker, args=(t,)) for t in range(self.num_threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _update_row(self, row, counts, target, other, grad_sq, fixed_column, rng):
        lo, hi = counts.indptr[row], counts.indptr[row + 1]
        liked, weight = counts.indices[lo:hi], counts.data[lo:hi]
        if len(liked) == 0:
            return
        current = target[row]
        pos = other[liked]
        prob = 1.0 / (1.0 + np.exp(-(pos @ current)))
        grad = ((1.0 - prob) * weight) @ pos

        n_neg = min(len(liked) * self.neg_prop, len(other))
        neg = other[rng.integers(0, len(other), n_neg)]
        prob = 1.0 / (1.0 + np.exp(-(neg @ current)))
        grad -= prob @ neg

        grad -= self.regularization * current
        grad[fixed_column] = 0.0
        grad_sq[row] += grad ** 2
        target[row] = current + self.learning_rate * grad / np.sqrt(1e-6 + grad_sq[row])

    def score_all(self, user):
        return self.item_factors @ self.user_factors[user]

    def recommend(self, user, seen, n):
        scores = self.score_all(user)
        scores[seen[user].indices] = -np.inf
        top = np.argsort(-scores, kind="stable")[:n]
        return top, scores[top]
