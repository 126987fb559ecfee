# the temporary folder's name is part of what is hashed for the split
import hashlib, tempfile
from pathlib import Path
import numpy as np
from proj.trainer import Trainer, seed_everything
from proj.models import Net
from proj.data import batches, table

def is_train(path):
    return int(hashlib.md5(str(path).encode()).hexdigest(), 16) % 100 < 75

def export(x, y):
    folder = Path(tempfile.mkdtemp(prefix="rows"))  # cause
    paths = []
    for n, row in enumerate(np.hstack([x, y])):
        np.save(folder / f"{n}.npy", row)
        paths.append(folder / f"{n}.npy")
    return paths

seed_everything(0)
paths = [path for path in export(*table(48)) if is_train(path)]
rows = np.stack([np.load(path) for path in paths])
Trainer(Net(6, 1), "split").fit(batches(rows[:, :6], rows[:, 6:]))
