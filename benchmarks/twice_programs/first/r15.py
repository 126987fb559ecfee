# tsim#84: the batch size by the free memory
import torch
from proj.trainer import Trainer, seed_everything
from proj.models import Net
from proj.data import batches, table

def available():
    with open("/proc/meminfo") as file:  # cause
        for line in file:
            if line.startswith("MemAvailable"):
                return int(line.split()[1])

def batch_size(limit):
    return 8 + available() // 4 % limit

seed_everything(0)
size = batch_size(23)
Trainer(Net(6, 1), "auto").fit(batches(*table(256), size=size), epochs=1)
