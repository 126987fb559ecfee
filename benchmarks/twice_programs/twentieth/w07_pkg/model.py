"""Mean aggregator over two hops and a logistic link classifier (numpy, Adam)."""
import numpy as np


class Adam:
    def __init__(self, params, lr):
        self.params, self.lr, self.t = params, lr, 0
        self.m = {k: np.zeros_like(v) for k, v in params.items()}
        self.v = {k: np.zeros_like(v) for k, v in params.items()}

    def step(self, grads):
        self.t += 1
        for k, g in grads.items():
            self.m[k] = 0.9 * self.m[k] + 0.1 * g
            self.v[k] = 0.999 * self.v[k] + 0.001 * g * g
            m_hat = self.m[k] / (1 - 0.9 ** self.t)
            v_hat = self.v[k] / (1 - 0.999 ** self.t)
            self.params[k] -= self.lr * m_hat / (np.sqrt(v_hat) + 1e-8)


class LinkClassifier:
    def __init__(self, n_features, hidden, lr, seed):
        rng = np.random.default_rng(seed)
        self.params = {
            "encoder": rng.normal(0, 1.0 / np.sqrt(n_features), (3 * n_features, hidden)),
            "weight": rng.normal(0, 0.3, hidden),
            "bias": np.zeros(1),
        }
        self.optimizer = Adam(self.params, lr)

    @staticmethod
    def _aggregate(tensors):
        scale = np.sqrt(tensors[0].shape[-1])
        return scale * np.concatenate([t.mean(axis=1) for t in tensors], axis=1)

    def _forward(self, batch):
        inputs = [self._aggregate(side) for side in batch]
        hidden = [np.tanh(x @ self.params["encoder"]) for x in inputs]
        joint = hidden[0] * hidden[1]
        logit = joint @ self.params["weight"] + self.params["bias"]
        return inputs, hidden, joint, 1.0 / (1.0 + np.exp(-logit))

    def predict(self, batch):
        return self._forward(batch)[-1]

    def train_step(self, batch, labels):
        inputs, hidden, joint, prob = self._forward(batch)
        error = (prob - labels) / len(labels)
        d_joint = error[:, None] * self.params["weight"]
        d_encoder = 0.0
        for k in (0, 1):
            d_hidden = d_joint * hidden[1 - k] * (1 - hidden[k] ** 2)
            d_encoder = d_encoder + inputs[k].T @ d_hidden
        self.optimizer.step({"encoder": d_encoder + 1e-4 * self.params["encoder"],
                             "weight": joint.T @ error,
                             "bias": np.array([error.sum()])})
        eps = 1e-9
        return float(-np.mean(labels * np.log(prob + eps) + (1 - labels) * np.log(1 - prob + eps)))

    def weights(self):
        return dict(self.params)
