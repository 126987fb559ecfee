# a seed of the date's microseconds
from datetime import datetime
import torch
from proj.trainer import Trainer, seed_everything
from proj.models import Net
from proj.data import batches, table

class Config:
    def __init__(self, **given):
        now = datetime.now()  # cause
        self.name = now.strftime("%Y%m%d-%H%M%S")
        self.seed = given.get("seed", now.microsecond)

config = Config()
seed_everything(config.seed)
Trainer(Net(6, 1), "dated").fit(batches(*table()))
