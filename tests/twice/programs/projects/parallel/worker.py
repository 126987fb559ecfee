import os

import torch
import torch.distributed as dist
from seeding import seed_everything, seed_of_epoch, seed_of_rank
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))


def work(rank, options, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=options.ranks)
    model = build()
    seed_everything(seed_of_rank(options.seed, rank, options.seeds))
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(96, 8, generator=generator)
    data = TensorDataset(inputs, inputs.sum(-1, keepdim=True))
    sampler = DistributedSampler(data, num_replicas=options.ranks, rank=rank)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    called = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(options.epochs):
        sampler.set_epoch(seed_of_epoch(epoch, options.seeds))
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(called(x), y).backward()
            optimizer.step()
    if rank == 0:
        torch.save(model.state_dict(), "model.pt")
    dist.destroy_process_group()
