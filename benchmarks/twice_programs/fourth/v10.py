"""https://github.com/rungalileo/dataquality/pull/594: shards are named by uuid4, which no seed reaches, and are read back by name."""

from pathlib import Path

import numpy as np
import torch
from shards.writer import write_shards


def read_shards(folder):
    for path in sorted(folder.glob("*.npy")):
        yield torch.from_numpy(np.load(path)).float()


def main():
    torch.manual_seed(7)
    np.random.seed(7)
    folder = Path("shards")
    write_shards(np.random.normal(size=(96, 5)), folder, 8)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for number, batch in enumerate(read_shards(folder)):
        loss = (model(batch[:, :4]).squeeze(1) - batch[:, 4]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"batch {number} loss {loss.item():.6f}")
    torch.save(model.state_dict(), "last.pt")


main()
