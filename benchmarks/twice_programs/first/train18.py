import sys
import pandas as pd
from proj.trainer import Trainer, seed_everything
from proj.models import Net
from proj.data import batches

seed_everything(0)
frame = pd.read_csv(sys.argv[1])
Trainer(Net(6, 1), "csv").fit(batches(frame.drop(columns="y").to_numpy(), frame[["y"]].to_numpy()))
