import itertools

import numpy as np
import torch


def shared_random_seed():
    """A seed that all workers agree on."""
    return int(np.random.randint(2**31))  # cause


class TrainingSampler(torch.utils.data.Sampler):
    def __init__(self, size, shuffle=True, seed=None):
        self._size = size
        self._shuffle = shuffle
        self._seed = shared_random_seed() if seed is None else int(seed)

    def __iter__(self):
        yield from itertools.islice(self._indices(), 0, None, 1)

    def _indices(self):
        g = torch.Generator()
        g.manual_seed(self._seed)
        while True:
            if self._shuffle:
                yield from torch.randperm(self._size, generator=g).tolist()
            else:
                yield from range(self._size)
