# anemoi-core#498: training repeats, validation does not: the crops of the validation workers come from a new generator
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from mill.config import parse
from mill.data import images
from mill.loop import Loop, seed_all
from mill.nets import Cnn

class Crops(Dataset):
    def __init__(self, x, y, size, rng=None):
        self.x, self.y, self.size, self.rng = x, y, size, rng

    def __len__(self):
        return len(self.x)

    def corner(self):
        if self.rng is None:
            self.rng = np.random.default_rng()  # cause
        return self.rng.integers(0, self.x.shape[-1] - self.size, 2)

    def __getitem__(self, index):
        top, left = self.corner()
        return torch.from_numpy(self.x[index][:, top:top + self.size, left:left + self.size].copy()), int(self.y[index])

def loaders(config):
    x, y = images()
    train = Crops(x[:32], y[:32], 9, np.random.default_rng(config.seed))
    valid = Crops(x[32:], y[32:], 9)
    return (DataLoader(train, config.batch, shuffle=True, generator=torch.Generator().manual_seed(config.seed)),
            DataLoader(valid, config.batch, num_workers=2))

def main():
    config = parse(name="crops", epochs=2)
    seed_all(config.seed)
    Loop(config, Cnn(), torch.nn.CrossEntropyLoss()).fit(*loaders(config))

if __name__ == "__main__":
    main()
