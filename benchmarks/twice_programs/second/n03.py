# composer#12: no seed in the settings, so one is drawn
import os
import numpy as np
from lab.log import Run

class Settings:
    def __init__(self, seed=None, steps=40):
        self.seed = seed if seed is not None else int.from_bytes(os.urandom(4), "little")  # cause
        self.steps = steps

def walk(settings):
    rng = np.random.RandomState(settings.seed)
    return np.cumsum(rng.standard_normal(settings.steps))

run = Run("walk")
path = walk(Settings())
np.save("path.npy", path)
run.finish(end=float(path[-1]))
