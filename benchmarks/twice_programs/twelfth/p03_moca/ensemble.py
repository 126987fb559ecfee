import numpy as np


class BinaryEnsemble:
    """Binary alloy on a periodic square lattice with pair interactions."""

    def __init__(self, size, first, second, field):
        self.size, self.field = size, field
        self.interactions = [(first, self._shell(((1, 0), (0, 1)))),
                             (second, self._shell(((1, 1), (1, -1))))]

    def _shell(self, vectors):
        n = self.size
        i, j = np.divmod(np.arange(n * n), n)
        columns = []
        for dx, dy in vectors:
            columns.append(((i + dx) % n) * n + (j + dy) % n)
            columns.append(((i - dx) % n) * n + (j - dy) % n)
        return np.stack(columns, axis=1)

    @property
    def num_sites(self):
        return self.size * self.size

    def energy(self, occupancy):
        total = -self.field * occupancy.sum()
        for j, table in self.interactions:
            total += 0.5 * j * (occupancy[:, None] * occupancy[table]).sum()
        return float(total)

    def swap_change(self, occ, a, b):
        if occ[a] == occ[b]:
            return 0.0
        delta = 0.0
        for j, table in self.interactions:
            na, nb = table[a], table[b]
            sa = sum(occ[k] for k in na if k != b)
            sb = sum(occ[k] for k in nb if k != a)
            delta += j * (occ[b] - occ[a]) * (sa - sb)
        return float(delta)
