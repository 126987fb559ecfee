"""Outputs together with their gradients."""

from __future__ import annotations

from collections.abc import Callable

from .exact import numbers
from .libraries import torch


def with_gradients(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the output of a function of tensors, and the gradient of each; the output's own is `numbers`."""
    inputs = tuple(value.detach().requires_grad_() for value in inputs)
    output = function(*inputs)
    seed = numbers(*output.shape, salt=99, device=str(output.device)).to(output.dtype)
    gradients = torch.autograd.grad(output, inputs, grad_outputs=seed)
    return {"output": output, **{f"gradient{i}": gradient for i, gradient in enumerate(gradients)}}


def filled(module: torch.nn.Module, device: str) -> torch.nn.Module:
    """Return a module on a device, its parameters small `numbers`."""
    with torch.no_grad():
        for salt, parameter in enumerate(module.parameters()):
            parameter.copy_(numbers(*parameter.shape, salt=50 + salt) * 0.2)
    return module.to(device)


def module_with_gradients(module: torch.nn.Module, *inputs: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the output of a module, and the gradients of its parameters and of its first input."""
    parameters = dict(module.named_parameters())
    first = inputs[0].detach().requires_grad_()
    output = module(first, *inputs[1:])
    output = output[0] if isinstance(output, tuple) else output
    seed = numbers(*output.shape, salt=99, device=str(output.device)).to(output.dtype)
    gradients = torch.autograd.grad(output, [first, *parameters.values()], grad_outputs=seed)
    return {"output": output, **dict(zip(("input", *parameters), gradients))}
