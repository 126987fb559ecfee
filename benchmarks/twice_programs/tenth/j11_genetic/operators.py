"""Operators on lists of booleans."""
import random


def uniform(n):
    return [random.random() for _ in range(n)]  # cause


def random_mask(n, max_on):
    u = uniform(n + 1)
    k = 1 + int(u[0] * max_on)
    order = sorted(range(n), key=lambda i: u[i + 1])
    mask = [False] * n
    for i in order[:k]:
        mask[i] = True
    return mask


def crossover(a, b, p):
    u = uniform(len(a))
    first = [y if r < p else x for x, y, r in zip(a, b, u)]
    second = [x if r < p else y for x, y, r in zip(a, b, u)]
    return first, second


def mutate(mask, p):
    return [(not m) if r < p else m for m, r in zip(mask, uniform(len(mask)))]


def tournament(population, fitness, size):
    picks = [int(r * len(population)) for r in uniform(size)]
    return population[max(picks, key=lambda i: fitness[i])]
