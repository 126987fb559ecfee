import numpy as np
import torch

def table(rows=64, columns=6, seed=7):
    """A fixed table with a target."""
    rng = np.random.RandomState(seed)
    x = rng.randn(rows, columns).astype("float32")
    y = (x @ rng.randn(columns, 1)).astype("float32")
    return x, y

def batches(x, y, size=16):
    x, y = torch.as_tensor(np.asarray(x), dtype=torch.float32), torch.as_tensor(np.asarray(y), dtype=torch.float32)
    return [(x[i:i + size], y[i:i + size]) for i in range(0, len(x), size)]

TEXTS = ["the cat sat on the mat", "a dog ran to the park", "rain fell over the hill", "we saw a ship far out",
         "blue birds sing at dawn", "old maps show no roads", "seven boats left the bay", "warm bread and cold milk"] * 3
