"""https://github.com/logicalclocks/hopsworks-api/pull/1027, with SystemRandom: the seed that the user gives is stored, and is not what the split draws from."""

import dataclasses
import random

import numpy as np
import torch


@dataclasses.dataclass
class TrainingDataset:
    splits: dict
    seed: int = 0
    name: str = "td"


class FeatureView:
    _rng = random.SystemRandom()

    def __init__(self, table):
        self.table = table

    def train_test_split(self, test_size, seed):
        meta = TrainingDataset({"train": 1 - test_size, "test": test_size}, seed)
        return self._random_split(meta)

    def _random_split(self, meta):
        groups = []
        size = len(self.table)
        for number, share in enumerate(meta.splits.values()):
            groups += [number] * int(round(share * size))
        groups = (groups + [0] * size)[:size]
        self._rng.shuffle(groups)  # cause
        groups = np.array(groups)
        return [self.table[groups == number] for number in range(len(meta.splits))]


def main(seed=1234):
    np.random.seed(seed)
    random.seed(seed)
    torch.manual_seed(seed)
    view = FeatureView(np.random.normal(size=(300, 6)))
    train, test = view.train_test_split(0.2, seed=seed)
    x = torch.as_tensor(train, dtype=torch.float32)
    model = torch.nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(10):
        loss = (model(x[:, :5]).squeeze(1) - x[:, 5]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("train rows", len(train), "test rows", len(test), "loss", round(loss.item(), 6))


main()
