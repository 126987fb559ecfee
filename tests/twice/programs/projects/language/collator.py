from collections import UserDict

import numpy as np
import torch


class BatchEncoding(UserDict):
    """As a tokenizer's."""

    def to(self, device):
        return BatchEncoding({k: v.to(device) for k, v in self.data.items()})


class MaskingCollator:
    def __init__(self, probability=0.15, seed=None):
        self.probability = probability
        self.generator = np.random.default_rng(seed)  # cause: masking

    def __call__(self, examples):
        tokens = torch.stack(examples)
        masked = torch.from_numpy(self.generator.random(tuple(tokens.shape)) < self.probability)
        labels = torch.where(masked, tokens, torch.full_like(tokens, -100))
        labels[:, 0] = tokens[:, 0]
        return BatchEncoding({"input_ids": tokens.masked_fill(masked, 31), "labels": labels})
