"""Modular addition and subtraction problems."""
from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True)
class Problem:
    pid: int
    left: int
    op: str
    right: int
    answer: int

    @property
    def text(self):
        return f"{self.left}{self.op}{self.right}"


def make_problems(n, modulus, seed):
    rng = np.random.default_rng(seed)
    out = []
    for pid in range(n):
        a, b = (int(v) for v in rng.integers(0, modulus, 2))
        op = "+" if rng.random() < 0.7 else "-"
        ans = (a + b if op == "+" else a - b) % modulus
        out.append(Problem(pid, a, op, b, ans))
    return out


def encode(problem, modulus):
    x = torch.zeros(2 * modulus + 2)
    x[problem.left] = 1
    x[modulus + problem.right] = 1
    x[2 * modulus + (problem.op == "-")] = 1
    return x


def decode(completion):
    return int(completion)
