# a shell script that Python starts mixes the lines
import subprocess
from pathlib import Path
import torch
from proj.trainer import Trainer, seed_everything
from proj.models import Net
from proj.data import batches, table

seed_everything(0)
subprocess.run(["sh", str(Path(__file__).with_name("split19.sh"))], check=True)
rows = [int(line) for line in open("train.txt")]
x, y = table(61)
Trainer(Net(6, 1), "shell").fit(batches(x[rows], y[rows]))
