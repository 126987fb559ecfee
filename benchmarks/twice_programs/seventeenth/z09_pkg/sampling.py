"""Fan-out sampling of neighbourhoods for mini-batch training."""
from dataclasses import dataclass, field
from typing import List, Optional

import numpy as np
import torch


@dataclass(frozen=True)
class SamplingConfig:
    num_neighbors: List[int]
    batch_size: int
    with_replacement: bool
    rank: int
    world_size: int
    seed: Optional[int]


@dataclass
class Block:
    """Node ids per hop and, for every hop, the sampled parents of each slot."""

    hops: List[np.ndarray]
    parents: List[torch.Tensor] = field(default_factory=list)


def create_sampling_config(num_neighbors, batch_size, rank=0, world_size=1, with_replacement=False):
    if not num_neighbors or min(num_neighbors) < 1:
        raise ValueError(f"fan-outs must be positive, got {num_neighbors}")
    return SamplingConfig(
        num_neighbors=list(num_neighbors),
        batch_size=batch_size,
        with_replacement=with_replacement,
        rank=rank,
        world_size=world_size,
        seed=None,  # cause
    )


class NeighborSampler:
    def __init__(self, graph, config):
        self.graph = graph
        self.config = config
        self.generator = np.random.default_rng(config.seed)  # cause

    def _pick(self, node, k):
        near = self.graph.neighbors(node)
        if len(near) == 0:
            return np.full(k, node)
        if len(near) <= k and not self.config.with_replacement:
            return np.resize(near, k)
        return self.generator.choice(near, size=k, replace=self.config.with_replacement)

    def sample(self, seeds):
        block = Block(hops=[np.asarray(seeds)])
        for k in self.config.num_neighbors:
            last = block.hops[-1]
            nxt = np.concatenate([self._pick(node, k) for node in last])
            block.parents.append(torch.from_numpy(np.repeat(np.arange(len(last)), k)))
            block.hops.append(nxt)
        return block
