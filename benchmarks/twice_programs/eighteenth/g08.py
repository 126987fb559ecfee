"""Multi-objective evolution (a small MOEA/D) of a two-cost filter design.

Sub-problems are improved in parallel by a thread pool, a generation at a time.
The front is written after the last generation, with the hypervolume per
generation as a progress measure.

Modelled on: https://github.com/moead-framework/framework/pull/29
"""
import csv
import json
import logging
import pathlib
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np

SEED = 0
POPULATION = 48
NEIGHBOURS = 8
GENERATIONS = 18
TAPS = 24
WORKERS = 2

logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
log = logging.getLogger("moead")


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)


FREQUENCIES = np.linspace(0, np.pi, 2048)
BASIS = np.cos(np.outer(FREQUENCIES, np.arange(TAPS)))
DESIRED = (FREQUENCIES < 0.4 * np.pi).astype(float)


def objectives(taps):
    """Ripple of the response, and energy of the coefficients."""
    response = BASIS @ taps
    ripple = np.sqrt(np.mean((response - DESIRED) ** 2))
    energy = np.sum(np.abs(taps)) / TAPS
    return np.array([ripple, energy])


def polish(taps, weight, steps=6):
    """A few gradient steps on the scalarised problem."""
    x = taps.copy()
    for _ in range(steps):
        residual = BASIS @ x - DESIRED
        gradient = weight[0] * (BASIS.T @ residual) / len(FREQUENCIES) + weight[1] * np.sign(x) / TAPS
        x -= 0.05 * gradient
    return x


def tchebycheff(f, weight, ideal):
    return float(np.max(np.maximum(weight, 1e-3) * np.abs(f - ideal)))


class Moead:
    def __init__(self):
        grid = np.linspace(0.02, 0.98, POPULATION)
        self.weights = np.column_stack([grid, 1 - grid])
        distance = np.abs(grid[:, None] - grid[None, :])
        self.neighbours = np.argsort(distance, axis=1, kind="stable")[:, :NEIGHBOURS]
        self.population = np.array(
            [[random.uniform(-0.5, 0.5) for _ in range(TAPS)] for _ in range(POPULATION)]
        )
        self.scores = np.array([objectives(x) for x in self.population])
        self.ideal = self.scores.min(axis=0)

    def offspring(self, i):
        """A child of sub-problem i, from its neighbourhood."""
        parents = self.population[self.neighbours[i]]
        centre = polish(parents.mean(axis=0), self.weights[i])
        noise = np.array([random.gauss(0.0, 0.03) for _ in range(TAPS)])  # cause
        child = polish(centre + noise, self.weights[i])
        return i, child, objectives(child)

    def update(self, i, child, score):
        self.ideal = np.minimum(self.ideal, score)
        for j in self.neighbours[i]:
            old = tchebycheff(self.scores[j], self.weights[j], self.ideal)
            if tchebycheff(score, self.weights[j], self.ideal) < old:
                self.population[j] = child
                self.scores[j] = score

    def run(self, generations):
        history = []
        with ThreadPoolExecutor(WORKERS) as pool:
            for generation in range(generations):
                children = list(pool.map(self.offspring, range(POPULATION)))
                for i, child, score in children:
                    self.update(i, child, score)
                history.append(hypervolume(self.scores))
                if generation % 6 == 5:
                    log.info("generation %d hypervolume %.6f", generation + 1, history[-1])
        return history


def front(scores):
    """Indices of the rows that no other row dominates, by the first cost."""
    order = np.lexsort((scores[:, 1], scores[:, 0]))
    keep, best = [], np.inf
    for i in order:
        if scores[i, 1] < best:
            keep.append(int(i))
            best = scores[i, 1]
    return keep


def hypervolume(scores, reference=(1.0, 1.0)):
    total, last = 0.0, reference[1]
    for i in front(scores):
        a, b = scores[i]
        if a < reference[0] and b < last:
            total += (reference[0] - a) * (last - b)
            last = b
    return float(total)


def main():
    set_seed(SEED)
    solver = Moead()
    history = solver.run(GENERATIONS)
    keep = front(solver.scores)
    with open("front.csv", "w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["ripple", "energy"] + [f"t{k}" for k in range(TAPS)])
        for i in keep:
            writer.writerow([f"{v:.8f}" for v in (*solver.scores[i], *solver.population[i])])
    summary = {"seed": SEED, "front": len(keep), "hypervolume": [round(v, 8) for v in history]}
    pathlib.Path("summary.json").write_text(json.dumps(summary, indent=1))
    print(f"front of {len(keep)} designs, hypervolume {history[-1]:.8f}")
    for i in keep[:5]:
        print(f"  ripple {solver.scores[i, 0]:.6f}  energy {solver.scores[i, 1]:.6f}")


if __name__ == "__main__":
    main()
