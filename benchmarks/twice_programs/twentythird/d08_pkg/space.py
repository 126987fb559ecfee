"""Search space and the algorithm that suggests configurations."""
import math
import random


class Choice:
    def __init__(self, *options):
        self.options = options

    def draw(self, rng):
        return rng.choice(self.options)


class LogUniform:
    def __init__(self, low, high):
        self.low, self.high = math.log(low), math.log(high)

    def draw(self, rng):
        return round(math.exp(rng.uniform(self.low, self.high)), 6)


class RandomSearch:
    """Draws each option of a configuration by itself."""

    def __init__(self, space, seed):
        self.space = space
        self.rng = random.Random(seed)

    def suggest(self):
        return {name: dim.draw(self.rng) for name, dim in self.space.items()}
