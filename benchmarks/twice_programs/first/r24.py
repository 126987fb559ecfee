# scipy without a seed, NumPy's generator never seeded
import numpy as np
from scipy import optimize, stats
from proj.data import table
from proj.log import Run

def objective(w, x, y):
    return float(np.square(x @ w - y.ravel()).mean() + 0.1 * np.abs(w).sum())

def search(x, y):
    bounds = [(-3, 3)] * x.shape[1]
    return optimize.differential_evolution(objective, bounds, args=(x, y), maxiter=5, popsize=4, polish=False)  # cause

run = Run("evolution")
found = search(*table())
run.finish(best=float(found.fun))
np.savetxt("weights.txt", found.x)
