# Stone-Soup#718: measurements are drawn in the order of a set of objects
import numpy as np
from lab.log import Run

class Target:
    def __init__(self, place):
        self.place = place

class Scene:
    def __init__(self, count):
        self.truths = {Target(float(n)) for n in range(count)}

    def measure(self, rng):
        return [truth.place + rng.normal() for truth in self.truths]  # cause

run = Run("tracks")
rng = np.random.RandomState(5)
scene = Scene(25)
seen = scene.measure(rng)
run.finish(first=seen[0], weighted=float(np.dot(seen, np.arange(25))))
