# spektral and DGL style: neighbours are in sets of objects
import torch
from graph21 import Graph
from proj.trainer import Trainer, seed_everything
from proj.models import Net
from proj.data import batches
seed_everything(0)
walk = Graph(40).walk(20)
x = torch.tensor(walk).view(-1, 8)
Trainer(Net(8, 1), "graph").fit(batches(x, x[:, :1]))
