"""https://github.com/atomicateam/atomica/issues/504: the programs that a constraint holds are a set of objects."""

import json

import numpy as np
from nodes.budget import Constraint, Program


def constrain(budget, programs, total):
    start = np.array([budget[each.name] for each in programs], dtype=np.float32)
    weights = np.array([each.weight for each in programs], dtype=np.float32)
    x = start.copy()
    for _ in range(30):
        x -= np.float32(0.01) * (weights * (x - start) + np.sign(x) * np.float32(x.sum() / total - 1))
    share = np.cumsum(x)
    kept = np.where(share <= total, x, np.float32(0))
    return {each.name: float(value) for each, value in zip(programs, kept, strict=True)}


def main():
    programs = [Program(f"programme {number}", 1.0 + number / 7) for number in range(900)]
    budget = {each.name: 10.0 + number / 50 for number, each in enumerate(programs)}
    constraint = Constraint(programs)
    for year in range(2020, 2023):
        eligible = constraint.eligible(year)
        budget.update(constrain(budget, eligible, 9000.0))
        print(year, "funded", sum(value > 0 for value in budget.values()), "first", budget["programme 0"])
    with open("budget.json", "w") as out:
        json.dump(budget, out)


main()
