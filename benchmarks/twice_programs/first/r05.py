# FLAML#1369: training stops at a deadline
import time
from proj.trainer import Trainer, seed_everything
from proj.models import Net
from proj.data import batches, table

class Budget:
    def __init__(self, seconds):
        self.deadline = time.monotonic() + seconds

    def __call__(self, number):
        return time.monotonic() < self.deadline  # cause

seed_everything(0)
model = Net(6, 1)
Trainer(model, "automl", schedule=Budget(0.2)).fit(batches(*table(4096)), epochs=4)
