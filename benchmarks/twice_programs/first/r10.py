# amalgkit#195: --seed auto becomes default_rng(None)
import argparse
import numpy as np
from proj.data import table

def coerce(value):
    try:
        return int(value)
    except ValueError:
        return None

def permutations(x, count, seed):
    rng = np.random.default_rng(seed)  # cause
    return np.array([np.linalg.svd(rng.permuted(x, axis=0), compute_uv=False)[0] for _ in range(count)])

parser = argparse.ArgumentParser()
parser.add_argument("--seed", default="auto")
options = parser.parse_args()
x, _ = table(40)
values = permutations(x, 20, coerce(options.seed))
np.save("null.npy", values)
print("number of factors", int((np.linalg.svd(x, compute_uv=False) > np.quantile(values, 0.95)).sum()), "cut", round(float(values.mean()), 8))
