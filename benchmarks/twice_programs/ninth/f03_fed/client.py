"""One site: local SGD on its own rows."""
import numpy as np


def forward(params, x):
    w1, b1, w2, b2 = params
    h = np.maximum(x @ w1 + b1, 0)
    z = h @ w2 + b2
    z = z - z.max(1, keepdims=True)
    e = np.exp(z)
    return h, e / e.sum(1, keepdims=True)


class Client:
    def __init__(self, cid, x, y, lr, epochs, seed):
        cut = int(0.8 * len(x))
        self.cid, self.lr, self.epochs, self.seed = cid, np.float32(lr), epochs, seed
        self.x, self.y = x[:cut], y[:cut]
        self.xv, self.yv = x[cut:], y[cut:]

    def fit(self, params, rnd):
        rng = np.random.default_rng([self.seed, self.cid, rnd])
        new = [p.copy() for p in params]
        losses = []
        for _ in range(self.epochs):
            order = rng.permutation(len(self.x))
            for i in range(0, len(order), 32):
                losses.append(self.step(new, order[i:i + 32]))
        delta = [a - b for a, b in zip(new, params)]
        return len(self.x), delta, float(np.mean(losses))

    def step(self, params, idx):
        x, y = self.x[idx], self.y[idx]
        h, p = forward(params, x)
        n = len(idx)
        loss = -np.log(p[np.arange(n), y] + 1e-9).mean()
        g = p.copy()
        g[np.arange(n), y] -= 1
        g /= n
        gh = (g @ params[2].T) * (h > 0)
        for param, grad in zip(params, (x.T @ gh, gh.sum(0), h.T @ g, g.sum(0))):
            param -= self.lr * grad.astype(np.float32)
        return float(loss)

    def evaluate(self, params):
        _, p = forward(params, self.xv)
        n = len(self.yv)
        loss = -np.log(p[np.arange(n), self.yv] + 1e-9).mean()
        return float(loss), float((p.argmax(1) == self.yv).mean()), n
