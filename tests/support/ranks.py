"""A program of two ranks, for torchrun, which looks itself up as launchers do.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

RANKS = """
import socket, torch
socket.getaddrinfo("localhost", 1)
socket.getaddrinfo(socket.gethostname(), 1)
torch.distributed.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Dropout())
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    optimizer.zero_grad()
    model(torch.full((3, 4), float(step + torch.distributed.get_rank()))).pow(2).sum().backward()
    optimizer.step()
torch.distributed.destroy_process_group()
"""

TORCHRUN = ("torchrun", "--standalone", "--nproc_per_node", "2", "ranks.py")
COUNTED = "(2 runs, 4 steps, 2 ranks, 0 lines of output, 0 files)"
LINE = f"repeats bit for bit {COUNTED}"
NOTE = "ranks 0, 1 drew the same random numbers of torch from step to step"
"""Since the program gives both the same seed."""
