# VeOmni#330: shards have random names, and their sorted names are the order of the data
import uuid
import numpy as np
import torch
from mill.batches import chunks
from mill.config import parse
from mill.data import sensors
from mill.loop import Loop, seed_all
from mill.nets import Mlp

class Store:
    def __init__(self, folder):
        self.folder = folder

    def write(self, x, y):
        name = f"part-{uuid.uuid4().hex}.npz"  # cause
        np.savez(self.folder / name, x=x, y=y)

    def read(self):
        parts = [np.load(path) for path in sorted(self.folder.glob("part-*.npz"))]
        return np.concatenate([p["x"] for p in parts]), np.concatenate([p["y"] for p in parts])

def main():
    config = parse(name="shards")
    seed_all(config.seed)
    x, y = sensors()
    folder = config.path("cache", "x").parent
    store = Store(folder)
    for start in range(0, 200, 25):
        store.write(x[start:start + 25], y[start:start + 25])
    Loop(config, Mlp(x.shape[1], config.width, 1), torch.nn.MSELoss()).fit(chunks(*store.read(), 20), chunks(x[200:], y[200:], 20))
    for path in folder.glob("part-*"):
        path.unlink()

main()
