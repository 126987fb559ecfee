"""https://github.com/PolicyEngine/policyengine-core/pull/455: seeds by hash() of a text, here in a step with an environment of its own."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).parent


def main():
    torch.manual_seed(1)
    subprocess.run([sys.executable, str(HERE / "synth03.py"), "people.npy"], env={"PATH": os.environ["PATH"], "HOME": "/tmp"}, check=True)
    table = torch.from_numpy(np.load("people.npy")).float()
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(20):
        loss = (model(table[:, :2]).squeeze(1) - table[:, 2]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())


main()
