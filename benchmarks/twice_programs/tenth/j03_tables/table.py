"""A small column-oriented table."""
import csv

import numpy as np


class Table:
    def __init__(self, columns=None):
        self._columns = dict(columns or {})

    @property
    def labels(self):
        return tuple(self._columns)

    @property
    def num_rows(self):
        return len(next(iter(self._columns.values()))) if self._columns else 0

    def column(self, label):
        return np.asarray(self._columns[label])

    def with_column(self, label, values):
        cols = dict(self._columns)
        cols[label] = np.asarray(values)
        return Table(cols)

    def where(self, label, value):
        mask = self.column(label) == value
        return Table({k: np.asarray(v)[mask] for k, v in self._columns.items()})

    def group(self, label):
        keys, counts = np.unique(self.column(label), return_counts=True)
        return Table({label: keys, "count": counts})

    def to_csv(self, path):
        with open(path, "w", newline="") as fh:
            w = csv.writer(fh)
            w.writerow(self.labels)
            for row in zip(*self._columns.values()):
                w.writerow([f"{v:.6f}" if isinstance(v, float) else v for v in row])

    def show(self, n=10):
        lines = [" | ".join(f"{c:<12}" for c in self.labels)]
        for i in range(min(n, self.num_rows)):
            lines.append(" | ".join(f"{str(self.column(c)[i]):<12}" for c in self.labels))
        return "\n".join(lines)
