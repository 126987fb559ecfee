"""https://github.com/pytorch/examples/tree/main/mnist_hogwild: processes update one model in shared memory, without a lock."""

import torch
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(10, 32)
        self.two = nn.Linear(32, 3)

    def forward(self, x):
        return F.log_softmax(self.two(torch.relu(self.one(x))), dim=1)


def batches(rank, seed):
    g = torch.Generator().manual_seed(seed + rank)
    for _ in range(60):
        x = torch.randn(32, 10, generator=g)
        yield x, x[:, :3].argmax(1)


def train(rank, seed, model):
    torch.manual_seed(seed + rank)
    torch.set_num_threads(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for x, y in batches(rank, seed):
        optimizer.zero_grad()
        F.nll_loss(model(x), y).backward()
        optimizer.step()  # cause


def main():
    torch.manual_seed(1)
    model = Net()
    model.share_memory()
    processes = [mp.Process(target=train, args=(rank, 1, model)) for rank in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    g = torch.Generator().manual_seed(77)
    x = torch.randn(200, 10, generator=g)
    loss = F.nll_loss(model(x), x[:, :3].argmax(1))
    print(f"Test set: average loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
