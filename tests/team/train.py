"""A team's program: two trainings with one seed, and whether they gave the same bits."""

import humanise
import torch


def train() -> bytes:
    """Train a small model for a few steps; return its weights."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.randn(32, 8)).square().mean().backward()
        optimizer.step()
    return b"".join(p.detach().numpy().tobytes() for p in model.parameters())


if __name__ == "__main__":
    print(humanise.NAME, torch.are_deterministic_algorithms_enabled(), train() == train())
