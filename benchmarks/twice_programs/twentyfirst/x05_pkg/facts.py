"""Random but reproducible input facts."""
import random
from dataclasses import dataclass, field


@dataclass
class Module:
    variables: list
    allocations: list = field(default_factory=list)
    assignments: list = field(default_factory=list)
    loads: list = field(default_factory=list)


def generate_module(seed, functions, heap_sites):
    rng = random.Random(seed)
    names = [f"f{k:05d}.v" for k in range(functions)]
    module = Module(variables=names)
    for site in range(heap_sites):
        for name in rng.sample(names, 2):
            module.allocations.append((name, site))
    for _ in range(functions * 3):
        a, b = rng.sample(names, 2)
        module.assignments.append((a, b))
    for _ in range(functions):
        a, b = rng.sample(names, 2)
        module.loads.append((a, b, rng.randrange(4)))
    return module


class FieldFilter:
    """Only heap objects that have the loaded field."""

    def __init__(self, number):
        self.number = number

    def __call__(self, tup):
        return tup[0] % 4 == self.number
