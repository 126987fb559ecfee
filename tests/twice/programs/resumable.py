"""Trains, saves after each epoch, and goes on from there; an argument names the state that it forgets."""

import os
import random
import sys

import torch
from torch import nn

FORGETS = sys.argv[1]

torch.manual_seed(0)
random.seed(0)
model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
data = torch.utils.data.TensorDataset(torch.randn(8, 8), torch.zeros(8, dtype=torch.long))
start = 0
if os.path.exists("last.pt"):
    saved = torch.load("last.pt", weights_only=False)
    start = saved["epoch"]
    model.load_state_dict(saved["model"])
    if FORGETS != "optimizer":
        optimizer.load_state_dict(saved["optimizer"])
    if FORGETS != "scheduler":
        scheduler.load_state_dict(saved["scheduler"])
    if FORGETS != "torch":
        torch.set_rng_state(saved["torch"])
    if FORGETS != "python":
        random.setstate(saved["python"])
for epoch in range(start, 4):
    order = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
    for inputs, labels in order:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs * random.random()), labels).backward()
        optimizer.step()
    scheduler.step()
    state = {"epoch": epoch + 1, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    generators = {"torch": torch.get_rng_state(), "python": random.getstate()}
    torch.save({**state, "scheduler": scheduler.state_dict(), **generators}, "last.pt")
