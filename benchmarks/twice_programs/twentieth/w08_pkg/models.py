"""Scoring functions and their gradients."""
import numpy as np


class Embedding:
    def __init__(self, n_entities, n_relations, dim, rng):
        bound = 6.0 / np.sqrt(dim)
        self.entities = rng.uniform(-bound, bound, (n_entities, dim))
        self.relations = rng.uniform(-bound, bound, (n_relations, dim))
        self.normalize()

    def normalize(self):
        norm = np.linalg.norm(self.entities, axis=1, keepdims=True)
        self.entities /= np.maximum(norm, 1.0)


class TransE(Embedding):
    def score(self, h, r, t):
        d = self.entities[h] + self.relations[r] - self.entities[t]
        return -(d * d).sum(-1)

    def score_tails(self, h, r):
        d = (self.entities[h] + self.relations[r])[:, None, :] - self.entities[None]
        return -(d * d).sum(-1)

    def grad(self, h, r, t):
        d = -2 * (self.entities[h] + self.relations[r] - self.entities[t])
        return d, d, -d


class DistMult(Embedding):
    def score(self, h, r, t):
        return (self.entities[h] * self.relations[r] * self.entities[t]).sum(-1)

    def score_tails(self, h, r):
        return (self.entities[h] * self.relations[r]) @ self.entities.T

    def grad(self, h, r, t):
        eh, er, et = self.entities[h], self.relations[r], self.entities[t]
        return er * et, eh * et, eh * er


MODELS = {"TransE": TransE, "DistMult": DistMult}
