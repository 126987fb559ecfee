"""https://github.com/facebookresearch/detectron2/issues/2121: a base seed drawn by NumPy goes through a dataclass to workers."""
import random
import time
from dataclasses import dataclass

import numpy as np


@dataclass
class Settings:
    seed: int = -1

    def resolved(self):
        if self.seed < 0:
            self.seed = int(np.random.randint(0, 2**31 - 1))  # cause
        return self.seed


def worker(seed, rank, n):
    g = np.random.default_rng(seed + rank)
    return g.normal(size=n).cumsum()


def main():
    random.seed(1)
    settings = Settings()
    settings.resolved()
    begin = time.time()
    walks = [worker(settings.seed, rank, 50) for rank in range(3)]
    print(f"took {time.time() - begin:.3f} s")
    print("ends", [float(w[-1]) for w in walks], "range", float(max(w.max() for w in walks)))


main()
