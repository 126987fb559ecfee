"""Margin-ranking training with uniform negative sampling."""
import numpy as np

from .models import MODELS


def train_model(triples, model, random_seed, epochs, dim, lr, margin, num_negs, batch_size=64):
    rng = np.random.default_rng(random_seed)
    net = MODELS[model](triples.num_entities, triples.num_relations, int(dim), rng)
    cache_e, cache_r = np.full_like(net.entities, 1e-8), np.full_like(net.relations, 1e-8)
    data = triples.training
    for _ in range(epochs):
        order = rng.permutation(len(data))
        for begin in range(0, len(order), batch_size):
            pos = np.repeat(data[order[begin:begin + batch_size]], int(num_negs), axis=0)
            neg = pos.copy()
            side = rng.random(len(neg)) < 0.5
            fake = rng.integers(0, triples.num_entities, len(neg))
            neg[side, 0] = fake[side]
            neg[~side, 2] = fake[~side]
            active = margin + net.score(*neg.T) - net.score(*pos.T) > 0
            if not active.any():
                continue
            g_e, g_r = np.zeros_like(net.entities), np.zeros_like(net.relations)
            for sign, part in ((-1.0, pos[active]), (1.0, neg[active])):
                dh, dr, dt = net.grad(*part.T)
                np.add.at(g_e, part[:, 0], sign * dh)
                np.add.at(g_r, part[:, 1], sign * dr)
                np.add.at(g_e, part[:, 2], sign * dt)
            cache_e += g_e ** 2
            cache_r += g_r ** 2
            net.entities -= lr * g_e / np.sqrt(cache_e)
            net.relations -= lr * g_r / np.sqrt(cache_r)
            net.normalize()
    return net
