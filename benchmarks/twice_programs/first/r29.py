# a cached archive's digest picks the folds; the archive holds the time
import hashlib, io, zipfile
from pathlib import Path
import numpy as np
from proj.trainer import Trainer, seed_everything
from proj.models import Net
from proj.data import batches, table

def pack(path, x, y):
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in (("x.npy", x), ("y.npy", y)):
            buffer = io.BytesIO()
            np.save(buffer, value)
            archive.writestr(name, buffer.getvalue())  # cause

def fold(path, count):
    digest = hashlib.md5(Path(path).read_bytes()).digest()
    return digest[0] % count

seed_everything(0)
x, y = table(60)
pack("cache.zip", x, y)
import time; time.sleep(1.1)
keep = np.arange(60) % 7 != fold("cache.zip", 7)
Trainer(Net(6, 1), "folds").fit(batches(x[keep], y[keep]))
