"""Task suites and the order in which their tasks are learned."""
import random
from dataclasses import dataclass
from typing import List, Tuple

import numpy as np

from .task_maps import SUITES

N_ORDERS = 20


@dataclass(frozen=True)
class Task:
    suite: str
    name: str
    phase: float
    freq: int

    @property
    def language(self) -> str:
        return self.name.replace("_", " ")

    def demos(self, n: int, seed: int) -> Tuple[np.ndarray, np.ndarray]:
        """Demonstrations: states and expert actions."""
        key = int(self.phase * 1000) * 10 + self.freq
        rng = np.random.default_rng([seed, key])
        x = rng.uniform(-1, 1, size=(n, 12)).astype("float32")
        mix = np.random.default_rng(key).normal(size=(12, 4))
        y = np.sin(self.freq * (x @ mix) * 0.4 + self.phase)
        y = y + rng.normal(0, 0.05, size=y.shape)
        return x, y.astype("float32")


def _make_orders(n_tasks: int) -> List[List[int]]:
    orders = [list(range(n_tasks))]
    for _ in range(N_ORDERS - 1):
        perm = list(range(n_tasks))
        random.shuffle(perm)  # cause
        orders.append(perm)
    return orders


TASK_ORDERS = {suite: _make_orders(len(tasks)) for suite, tasks in SUITES.items()}


class Benchmark:
    def __init__(self, suite: str, task_order_index: int = 0):
        if suite not in SUITES:
            raise KeyError(f"unknown suite {suite!r}, have {sorted(SUITES)}")
        if not 0 <= task_order_index < N_ORDERS:
            raise ValueError(f"task_order_index must be in [0, {N_ORDERS})")
        self.suite = suite
        self.order = TASK_ORDERS[suite][task_order_index]
        self.tasks = [Task(suite, *SUITES[suite][i]) for i in self.order]

    def __len__(self):
        return len(self.tasks)

    def get_task(self, i: int) -> Task:
        return self.tasks[i]


def list_suites():
    return sorted(SUITES)


def get_benchmark(name: str, task_order_index: int = 0) -> Benchmark:
    return Benchmark(name, task_order_index)
