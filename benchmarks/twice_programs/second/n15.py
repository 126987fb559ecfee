# a cache key by the time of day picks the fold
import time
import numpy as np
from lab.log import Run

def fold_of(stamp, folds):
    return int(stamp * 1000) % folds

def main():
    run = Run("folds")
    begun = time.time()
    values = np.arange(100.0).reshape(10, 10)
    chosen = fold_of(time.time(), 9)  # cause
    score = float(values[chosen].sum())
    np.save("fold.npy", values[chosen])
    run.finish(score=score)
    run.log.info("took %.3f s", time.time() - begun)

main()
