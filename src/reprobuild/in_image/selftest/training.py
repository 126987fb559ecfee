"""Training of a small network."""

from __future__ import annotations

from collections.abc import Mapping

from .exact import indices, numbers
from .gradients import filled
from .libraries import torch
from .outcomes import Results
from .registry import ACROSS, BOTH, WITHIN, check


def train(
    device: str, optimizer: str, options: Mapping[str, float], steps: int = 20
) -> dict[str, torch.Tensor]:
    """Return the losses and the last parameters of a small CNN after some steps on 16 images of 12 x 12."""
    nn = torch.nn
    layers = (
        nn.Conv2d(1, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(200, 10),
    )
    model = filled(nn.Sequential(*layers), device)
    images, labels = numbers(16, 1, 12, 12, device=device), indices(16, 10, device=device)
    stepper = getattr(torch.optim, optimizer)(model.parameters(), **options)
    losses = []
    for _ in range(steps):
        stepper.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        stepper.step()
        losses.append(loss.detach())
    return {"losses": torch.stack(losses), **dict(model.named_parameters())}


@check(WITHIN, ACROSS, devices=BOTH, order=700)
def train_sgd(device: str) -> Results:
    """Twenty steps of training with SGD repeat: losses and parameters."""
    return train(device, "SGD", {"lr": 0.1})


@check(WITHIN, ACROSS, devices=BOTH, order=705)
def train_momentum(device: str) -> Results:
    """Twenty steps of training with momentum repeat: losses and parameters."""
    return train(device, "SGD", {"lr": 0.05, "momentum": 0.9})


@check(WITHIN, ACROSS, devices=BOTH, order=710)
def train_adamw(device: str) -> Results:
    """Twenty steps of training with AdamW repeat: losses and parameters."""
    return train(device, "AdamW", {"lr": 0.01})
