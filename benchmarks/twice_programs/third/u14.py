# the size of a chunk follows the load of the machine, and the order of a sum follows the size
import os
import numpy as np
import torch
from mill.batches import chunks
from mill.config import parse
from mill.data import sensors
from mill.loop import Loop, seed_all
from mill.nets import Mlp

class Workload:
    def __init__(self, cores):
        self.cores = cores

    def free(self):
        busy = os.getloadavg()[0]  # cause
        return max(0.1, self.cores * 32 - busy)

    def rows(self, most):
        return max(8, int(self.free() * 1000) % most)

def normalized(x, size):
    parts = [x[i:i + size] for i in range(0, len(x), size)]
    mean = np.float32(0)
    for part in parts:
        mean = mean + part.sum(0, dtype=np.float32) / np.float32(len(x))
    return (x - mean) / x.std(0)

def main():
    config = parse(name="chunked")
    seed_all(config.seed)
    x, y = sensors()
    x = normalized(x, Workload(2).rows(97))
    Loop(config, Mlp(x.shape[1], config.width, 1), torch.nn.MSELoss()).fit(chunks(x[:200], y[:200], 20), chunks(x[200:], y[200:], 20))

main()
