"""Datasets of samples."""
import json
import random
from dataclasses import dataclass, field


@dataclass
class Sample:
    id: int
    input: str
    target: str
    metadata: dict = field(default_factory=dict)


class MemoryDataset:
    def __init__(self, samples, name=None):
        self.samples = list(samples)
        self.name = name
        self.shuffled = False

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return MemoryDataset(self.samples[index], self.name)
        return self.samples[index]

    def __iter__(self):
        return iter(self.samples)

    def shuffle(self, seed=None):
        if seed:  # cause
            random.Random(seed).shuffle(self.samples)
        else:
            random.shuffle(self.samples)  # cause
        self.shuffled = True

    def filter(self, predicate):
        return MemoryDataset([s for s in self.samples if predicate(s)], self.name)


def json_dataset(path, shuffle=False, seed=None, limit=None):
    samples = []
    with open(path) as f:
        for i, line in enumerate(f, 1):
            rec = json.loads(line)
            meta = {k: rec[k] for k in ("kind", "level")}
            samples.append(Sample(i, rec["input"], rec["target"], meta))
    dataset = MemoryDataset(samples, path)
    if shuffle:
        dataset.shuffle(seed=seed)
    return dataset[:limit] if limit is not None else dataset
