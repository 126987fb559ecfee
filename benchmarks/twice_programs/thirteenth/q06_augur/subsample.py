"""Group wise subsampling with fixed size priority queues."""
import heapq
import itertools
import logging
from dataclasses import dataclass, field

import numpy as np

log = logging.getLogger("augur.filter")


@dataclass
class SubsampleOptions:
    group_by: tuple = ("region", "year", "month")
    max_sequences: int = 120
    seed: int = 314159
    probabilistic: bool = True


@dataclass
class Group:
    key: tuple
    strains: list = field(default_factory=list)


class PriorityQueue:
    """Keeps the items with the highest priorities, up to a size."""

    def __init__(self, max_size):
        self.max_size = max_size
        self.heap = []
        self.counter = itertools.count()

    def add(self, item, priority):
        if self.max_size <= 0:
            return
        heapq.heappush(self.heap, (priority, next(self.counter), item))
        if len(self.heap) > self.max_size:
            heapq.heappop(self.heap)

    def items(self):
        return [item for _, _, item in sorted(self.heap)]


class TooManyGroups(ValueError):
    pass


class Subsampler:
    def __init__(self, options: SubsampleOptions):
        self.options = options
        self.priority_rng = np.random.default_rng(options.seed)

    def group(self, table):
        groups = {}
        for row in table.itertuples(index=False):
            key = tuple(getattr(row, name) for name in self.options.group_by)
            groups.setdefault(key, Group(key)).strains.append(row.strain)
        return [groups[k] for k in sorted(groups)]

    def sequences_per_group(self, groups):
        total = self.options.max_sequences
        if len(groups) > total and not self.options.probabilistic:
            raise TooManyGroups(f"{len(groups)} groups for {total} sequences")
        sizes = [len(g.strains) for g in groups]
        low, high = 1e-5, float(max(sizes))
        for _ in range(80):
            mid = (low + high) / 2
            if sum(min(mid, s) for s in sizes) > total:
                high = mid
            else:
                low = mid
        return (low + high) / 2

    def create_queues(self, groups, per_group):
        if per_group >= 1:
            return {g.key: PriorityQueue(int(per_group)) for g in groups}
        log.info("probabilistic sampling: %.4f per group", per_group)
        sizes = np.random.default_rng().poisson(per_group, size=len(groups))  # cause
        return {g.key: PriorityQueue(int(s)) for g, s in zip(groups, sizes)}

    def run(self, table):
        groups = self.group(table)
        per_group = self.sequences_per_group(groups)
        queues = self.create_queues(groups, per_group)
        for g in groups:
            for strain in g.strains:
                queues[g.key].add(strain, self.priority_rng.random())
        kept = []
        for g in groups:
            kept.extend(queues[g.key].items())
        log.info("%d groups, kept %d of %d", len(groups), len(kept), len(table))
        return kept
