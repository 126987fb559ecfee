"""Item lists, random splitting and the datasets built on them."""
import os

import numpy as np
import torch
from torch.utils.data import TensorDataset


class ItemList:
    def __init__(self, items):
        self.items = list(items)

    @classmethod
    def from_folder(cls, path, extensions=(".npz",)):
        found = []
        for entry in os.scandir(path):  # cause
            if entry.is_file() and entry.name.endswith(extensions):
                found.append(entry.path)
        return cls(found)

    def split_by_rand_pct(self, valid_pct=0.2, seed=None):
        rs = np.random.RandomState(seed)
        order = rs.permutation(len(self.items))
        cut = int(valid_pct * len(self.items))
        return ItemList(self.items[i] for i in order[cut:]), ItemList(self.items[i] for i in order[:cut])

    def dataset(self):
        xs, ys = [], []
        for p in self.items:
            with np.load(p) as z:
                xs.append(z["images"])
                ys.append(z["labels"])
        return TensorDataset(torch.from_numpy(np.concatenate(xs))[:, None], torch.from_numpy(np.concatenate(ys)).long())

    def __len__(self):
        return len(self.items)
