"""A classifier trained step by step, so that a runner can stop it early."""
import numpy as np


def make_data(n=900, seed=21):
    """Two-dimensional spirals of three classes, split in two parts."""
    rng = np.random.default_rng(seed)
    label = np.arange(n) % 3
    radius = np.sqrt(rng.random(n))
    angle = 4.2 * radius + label * 2 * np.pi / 3 + rng.normal(0, 0.22, n)
    x = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    cut = 2 * n // 3
    return (x[:cut], label[:cut]), (x[cut:], label[cut:])


class Trainable:
    def __init__(self, config):
        self.config = config
        self.iteration = 0
        self.setup(config)

    def setup(self, config):
        raise NotImplementedError

    def step(self):
        raise NotImplementedError

    def train(self):
        self.iteration += 1
        result = self.step()
        result["iteration"] = self.iteration
        return result


class SpiralNet(Trainable):
    """One hidden layer, plain minibatch gradient descent with momentum."""

    def setup(self, config):
        self.train_set, self.valid_set = make_data()
        sizes = [2, config["hidden"], 3]
        self.weights = [self.init_weight(a, b) for a, b in zip(sizes, sizes[1:])]
        self.biases = [np.zeros(b) for b in sizes[1:]]
        self.speed = [np.zeros_like(p) for p in self.weights + self.biases]

    @staticmethod
    def init_weight(fan_in, fan_out):
        return np.random.randn(fan_in, fan_out) * np.sqrt(2.0 / fan_in)  # cause

    def forward(self, x):
        hidden = np.maximum(x @ self.weights[0] + self.biases[0], 0.0)
        logits = hidden @ self.weights[1] + self.biases[1]
        logits -= logits.max(axis=1, keepdims=True)
        prob = np.exp(logits)
        return hidden, prob / prob.sum(axis=1, keepdims=True)

    def gradients(self, x, y):
        hidden, prob = self.forward(x)
        delta = prob.copy()
        delta[np.arange(len(y)), y] -= 1.0
        delta /= len(y)
        back = (delta @ self.weights[1].T) * (hidden > 0)
        return [x.T @ back, hidden.T @ delta, back.sum(axis=0), delta.sum(axis=0)]

    def step(self):
        x, y = self.train_set
        size = self.config["batch"]
        for start in range(0, len(x), size):
            grads = self.gradients(x[start:start + size], y[start:start + size])
            for p, v, g in zip(self.weights + self.biases, self.speed, grads):
                v *= self.config["momentum"]
                v -= self.config["lr"] * g
                p += v
        return {"loss": self.loss(*self.train_set), "accuracy": self.accuracy(*self.valid_set)}

    def loss(self, x, y):
        _, prob = self.forward(x)
        return float(-np.log(prob[np.arange(len(y)), y] + 1e-12).mean())

    def accuracy(self, x, y):
        _, prob = self.forward(x)
        return float((prob.argmax(axis=1) == y).mean())
