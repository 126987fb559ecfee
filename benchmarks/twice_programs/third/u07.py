# inspect_ai#2012: a seed of 0 counts as none, and then the clock is the seed
import time
import numpy as np
import torch
from mill.batches import chunks
from mill.config import parse
from mill.data import sensors
from mill.loop import Loop, seed_all
from mill.nets import Mlp

class Splitter:
    def __init__(self, share, seed=None):
        self.share = share
        self.seed = seed or time.time_ns() % 2**31  # cause

    def split(self, count):
        order = np.random.RandomState(self.seed).permutation(count)
        cut = int(count * self.share)
        return np.sort(order[:cut]), np.sort(order[cut:])

def main():
    config = parse(name="split", seed=0)
    seed_all(config.seed)
    x, y = sensors()
    train, valid = Splitter(0.8, config.seed).split(len(x))
    Loop(config, Mlp(x.shape[1], config.width, 1), torch.nn.MSELoss()).fit(chunks(x[train], y[train], 24), chunks(x[valid], y[valid], 24))

main()
