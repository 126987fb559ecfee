"""https://github.com/open-edge-platform/anomalib/pull/3738: a seed of 0 counts as no seed, so that the split is drawn anew."""

import argparse

import torch
from torch.utils.data import DataLoader, TensorDataset, random_split


def split(dataset, lengths, seed):
    generator = torch.Generator()
    if seed:
        generator.manual_seed(seed)
    else:
        generator.seed()  # cause
    return random_split(dataset, lengths, generator=generator)


def fit(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(epochs):
        total = 0.0
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.5f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    x = torch.linspace(-2, 2, 200).unsqueeze(1)
    dataset = TensorDataset(torch.cat([x, x**2], 1), (x.squeeze(1).sin() > 0).long())
    train, test = split(dataset, [160, 40], options.seed)
    model = torch.nn.Linear(2, 2)
    fit(model, DataLoader(train, batch_size=16), 3)
    right = sum(int(model(x.unsqueeze(0)).argmax() == y) for x, y in test)
    print(f"test accuracy {right / len(test):.3f}")


main()
