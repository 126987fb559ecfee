"""https://github.com/pola-rs/polars/pull/27537: DataFrame.sample draws from a generator of Polars, which random.seed does not reach."""

import random

import numpy as np
import polars as pl
import torch

SEED = 42


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def load_trips(n=400):
    rng = np.random.default_rng(7)
    return pl.DataFrame(
        {
            "distance": rng.gamma(2.0, 3.0, n),
            "hour": rng.integers(0, 24, n),
            "fare": rng.gamma(3.0, 4.0, n),
        }
    )


def split(frame, share):
    mixed = frame.with_row_index("row").sample(fraction=1.0, shuffle=True)  # cause
    cut = int(len(mixed) * share)
    return mixed[:cut], mixed[cut:]


def tensors(frame):
    x = torch.tensor(frame.select("distance", "hour").to_numpy(), dtype=torch.float32)
    return x / x.abs().max(0).values, torch.tensor(frame["fare"].to_numpy(), dtype=torch.float32)


def main():
    seed_everything(SEED)
    train, test = split(load_trips(), 0.8)
    x, y = tensors(train)
    model = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(8):
        for at in range(0, len(x), 64):
            loss = torch.nn.functional.huber_loss(model(x[at : at + 64]).squeeze(1), y[at : at + 64])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.5f}")
    x, y = tensors(test)
    print("mae", (model(x).squeeze(1) - y).abs().mean().item())


main()
