"""Matrix factorisation with the BPR and WARP losses."""
import numpy as np


def check_state(state):
    if state is None:
        return np.random.RandomState()
    if isinstance(state, np.random.RandomState):
        return state
    return np.random.RandomState(state)


class Factorizer:
    def __init__(self, no_components=10, learning_rate=0.05, loss="warp", user_alpha=0.0,
                 item_alpha=0.0, max_sampled=8, random_state=None):
        if loss not in ("warp", "bpr"):
            raise ValueError(f"unknown loss {loss!r}")
        self.no_components = no_components
        self.learning_rate = learning_rate
        self.loss = loss
        self.user_alpha = user_alpha
        self.item_alpha = item_alpha
        self.max_sampled = max_sampled
        self.random_state = check_state(random_state)

    def _initialize(self, n_users, n_items):
        d = self.no_components
        self.user_embeddings = (self.random_state.rand(n_users, d) - 0.5) / d
        self.item_embeddings = (self.random_state.rand(n_items, d) - 0.5) / d
        self.item_biases = np.zeros(n_items)

    def _score(self, u, i):
        return self.user_embeddings[u] @ self.item_embeddings[i] + self.item_biases[i]

    def _update(self, u, pos, neg, weight):
        lr = self.learning_rate
        pu, qi, qj = self.user_embeddings[u].copy(), self.item_embeddings[pos], self.item_embeddings[neg]
        self.user_embeddings[u] += lr * (weight * (qi - qj) - self.user_alpha * pu)
        self.item_embeddings[pos] += lr * (weight * pu - self.item_alpha * qi)
        self.item_embeddings[neg] -= lr * (weight * pu + self.item_alpha * qj)
        self.item_biases[pos] += lr * weight
        self.item_biases[neg] -= lr * weight

    def fit(self, interactions, epochs=10, log=None):
        n_users, n_items = interactions.shape
        coo = interactions.tocoo()
        seen = [set(interactions.indices[interactions.indptr[u]:interactions.indptr[u + 1]]) for u in range(n_users)]
        self._initialize(n_users, n_items)
        for epoch in range(epochs):
            violations = 0
            for k in self.random_state.permutation(coo.nnz):
                u, pos = int(coo.row[k]), int(coo.col[k])
                pos_score = self._score(u, pos)
                draws = self.random_state.randint(0, n_items, self.max_sampled)
                for tried, neg in enumerate(draws.tolist(), start=1):
                    if neg in seen[u]:
                        continue
                    margin = pos_score - self._score(u, neg)
                    if self.loss == "bpr":
                        self._update(u, pos, neg, 1.0 / (1.0 + np.exp(margin)))
                        break
                    if margin < 1.0:
                        violations += 1
                        self._update(u, pos, neg, np.log(max(1.0, (n_items - 1) // tried)) / np.log(n_items))
                        break
            if log:
                log(f"epoch {epoch + 1}: {violations} updates")
        return self

    def predict_matrix(self):
        return self.user_embeddings @ self.item_embeddings.T + self.item_biases
