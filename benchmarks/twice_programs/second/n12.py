# each worker's seed is its process number
import os
import numpy as np
from multiprocessing import Pool
from lab.log import Run

def start():
    np.random.seed(os.getpid() % 2**31)  # cause

def simulate(count):
    return float(np.random.standard_normal(count).sum())

def main():
    run = Run("pool")
    with Pool(1, initializer=start) as pool:
        values = pool.map(simulate, [5, 6, 7])
    run.finish(total=sum(values))

if __name__ == "__main__":
    main()
