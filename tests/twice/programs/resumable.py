"""Trains, saves after each epoch, and goes on from there; an argument names the state that it forgets.

``--epochs N`` stops after so many epochs. Model, optimizer, scheduler, scaler of gradients, generators of
Python, NumPy and torch, and the order of the data each have to come back.
"""

import argparse
import os
import random

import numpy as np
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("forgets", nargs="?", default="nothing")
parser.add_argument("--epochs", type=int, default=4)
options = parser.parse_args()

torch.manual_seed(0)
random.seed(0)
np.random.seed(0)
model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
scaler = torch.amp.GradScaler("cpu", init_scale=1024, growth_interval=3)
data = torch.utils.data.TensorDataset(torch.randn(8, 8), torch.zeros(8, dtype=torch.long))
shuffling = torch.Generator().manual_seed(1)
start = 0
if os.path.exists("last.pt"):
    saved = torch.load("last.pt", weights_only=False)
    start = saved["epoch"]
    for name, part in {
        "model": model,
        "optimizer": optimizer,
        "scheduler": scheduler,
        "scaler": scaler,
    }.items():
        if name == "model" and options.forgets == "buffers":
            saved[name] |= {key: value for key, value in model.state_dict().items() if "running" in key}
        if options.forgets != name:
            part.load_state_dict(saved[name])
    if options.forgets != "torch":
        torch.set_rng_state(saved["torch"])
    if options.forgets != "python":
        random.setstate(saved["python"])
    if options.forgets != "numpy":
        np.random.set_state(saved["numpy"])
    if options.forgets != "data":
        shuffling.set_state(saved["data"])
for epoch in range(start, options.epochs):
    for inputs, labels in torch.utils.data.DataLoader(data, batch_size=4, shuffle=True, generator=shuffling):
        optimizer.zero_grad()
        noisy = inputs * random.random() + np.random.rand()
        scaler.scale(nn.functional.cross_entropy(model(noisy), labels)).backward()
        scaler.step(optimizer)
        scaler.update()
    scheduler.step()
    state = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler}
    generators = {"torch": torch.get_rng_state(), "python": random.getstate(), "numpy": np.random.get_state()}
    states = {name: part.state_dict() for name, part in state.items()}
    torch.save({"epoch": epoch + 1, **states, **generators, "data": shuffling.get_state()}, "last.pt")
