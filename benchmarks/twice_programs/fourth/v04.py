"""https://github.com/microsoft/FLAML/pull/1369: training that ends when a time budget is used up, not after a number of steps."""

import time

import torch

BUDGET = 0.5


def data():
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(256, 8, generator=generator)
    return x, x @ torch.arange(8.0) + 0.1 * torch.randn(256, generator=generator)


def fit(x, y, budget):
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    steps, began = 0, None
    while True:
        loss = (model(x).squeeze(1) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        began = began or time.monotonic()
        if time.monotonic() - began > budget:  # cause
            return model, loss.item(), steps


def main():
    x, y = data()
    model, loss, steps = fit(x, y, BUDGET)
    print(f"stopped after {steps} steps, loss {loss:.6f}")
    torch.save(model.state_dict(), "model.pt")


main()
