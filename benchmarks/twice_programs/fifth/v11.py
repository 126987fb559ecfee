"""https://github.com/lucidrains/DALLE2-pytorch/pull/130: parameters with weight decay are a set difference, so their order is that of addresses."""

import torch
from torch import nn


def separate_weight_decayable_params(params):
    params = set(params)
    no_decay = {param for param in params if param.ndim < 2}
    return params - no_decay, no_decay


def get_optimizer(params, lr=1e-2, wd=1e-2):
    decay, no_decay = separate_weight_decayable_params(params)
    groups = [
        {"params": list(decay)},  # cause
        {"params": list(no_decay), "weight_decay": 0},  # cause
    ]
    return torch.optim.AdamW(groups, lr=lr, weight_decay=wd)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 2 * dim)
        self.down = nn.Linear(2 * dim, dim)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def clip(optimizer, most):
    grads = [p.grad for group in optimizer.param_groups for p in group["params"]]
    total = torch.zeros(())
    for grad in grads:
        total = total + grad.square().sum()
    scale = most / (total.sqrt() + 1e-6)
    for grad in grads:
        grad.mul_(scale.clamp(max=1.0))
    return total.sqrt()


def main():
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(16, 32), *[Block(32) for _ in range(6)], nn.Linear(32, 1))
    optimizer = get_optimizer(net.parameters())
    x, y = torch.randn(64, 16), torch.randn(64, 1)
    for step in range(12):
        loss = (net(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        norm = clip(optimizer, 0.1)
        optimizer.step()
        print(step, loss.item(), norm.item())


main()
