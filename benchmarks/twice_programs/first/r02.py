# joblib, Surprise#212: workers of loky draw from NumPy's generator, seeded in the parent only
import numpy as np
from joblib import Parallel, delayed
from proj.trainer import Trainer, seed_everything
from proj.models import Net
from proj.data import batches, table

def resample(x, y):
    rows = np.random.randint(0, len(x), len(x))  # cause
    return x[rows], y[rows]

def main():
    seed_everything(0)
    x, y = table()
    parts = Parallel(n_jobs=2)(delayed(resample)(x, y) for _ in range(2))
    x, y = (np.concatenate([part[i] for part in parts]) for i in range(2))
    Trainer(Net(6, 1), "bagging").fit(batches(x, y), epochs=1)

if __name__ == "__main__":
    main()
