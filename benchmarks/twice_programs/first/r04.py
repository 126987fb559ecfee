# Protify#21: set_global_seed takes the time by default
import time
from proj.trainer import Trainer, seed_everything
from proj.models import Net
from proj.data import batches, table

def set_global_seed(seed=None):
    if seed is None:
        seed = int(time.time() * 1000) % 2**31  # cause
    seed_everything(seed)
    return seed

set_global_seed()
Trainer(Net(6, 1), "protein").fit(batches(*table()))
