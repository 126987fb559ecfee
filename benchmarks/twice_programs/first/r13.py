# ray#3781: the newest checkpoint by its time; several are written at once
import os, threading
from pathlib import Path
import torch
from proj.trainer import Trainer, seed_everything
from proj.models import Net
from proj.data import batches, table

def write(folder, number):
    torch.save({"first.bias": torch.full((16,), number / 10)}, folder / f"member-{number}.pt")

def newest(folder):
    return max(folder.glob("*.pt"), key=os.path.getmtime)  # cause

seed_everything(0)
folder = Path("population")
folder.mkdir()
threads = [threading.Thread(target=write, args=(folder, n)) for n in range(8)]
for each in threads:
    each.start()
for each in threads:
    each.join()
model = Net(6, 1)
model.load_state_dict(torch.load(newest(folder)), strict=False)
Trainer(model, "resume").fit(batches(*table()))
