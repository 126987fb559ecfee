"""A grid with wind, pits and one goal."""
import numpy as np

MOVES = [(1, 0), (-1, 0), (0, 1), (0, -1)]


class GridWorld:
    def __init__(self, size, seed):
        rng = np.random.default_rng(seed)
        self.size = size
        self.goal = (size - 2, size - 2)
        cells = [(i, j) for i in range(size) for j in range(size) if (i, j) != self.goal]
        picks = rng.permutation(len(cells))[:size]
        self.pits = {cells[k] for k in picks}
        self.wind = rng.uniform(0, 0.2, size)

    def reset(self, rng):
        return int(rng.integers(self.size)), int(rng.integers(self.size))

    def step(self, state, action, rng):
        dx, dy = MOVES[action]
        x, y = state[0] + dx, state[1] + dy
        if rng.random() < self.wind[state[0]]:
            y += 1
        x, y = min(max(x, 0), self.size - 1), min(max(y, 0), self.size - 1)
        if (x, y) == self.goal:
            return (x, y), 1.0, True
        if (x, y) in self.pits:
            return (x, y), -0.5, True
        return (x, y), -0.02, False
