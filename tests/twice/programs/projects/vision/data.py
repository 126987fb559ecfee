import torch
from torch.utils.data import DataLoader, Dataset
from transforms import Compose, Flip, Jitter


class Shapes(Dataset):
    """Squares and crosses in noise."""

    def __init__(self, length, seed, transform):
        generator = torch.Generator().manual_seed(seed)
        self.images = torch.rand(length, 1, 12, 12, generator=generator) * 0.3
        self.labels = torch.randint(0, 2, (length,), generator=generator)
        for at, label in enumerate(self.labels):
            if label:
                self.images[at, 0, 3:9, 3:9] += 1
            else:
                self.images[at, 0, 5:7, :] += 1
                self.images[at, 0, :, 5:7] += 1
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, at):
        return self.transform(self.images[at]), self.labels[at]


def loaders(options):
    steps = [Flip()]
    if options.jitter:
        steps.append(Jitter())
    generator = torch.Generator().manual_seed(options.seed)
    shared = {
        "batch_size": options.batch_size,
        "shuffle": True,
        "generator": generator,
        "num_workers": options.workers,
        "multiprocessing_context": options.start_method if options.workers else None,
        "persistent_workers": options.workers > 0,
    }
    train = DataLoader(Shapes(48, options.seed, Compose(*steps)), **shared)
    held_out = DataLoader(Shapes(256, options.seed + 1, Compose()), **{**shared, "batch_size": 1})
    return train, held_out
