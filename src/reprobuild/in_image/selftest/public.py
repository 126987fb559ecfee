"""Public functions of torch, NumPy and random, each called by the form of its arguments."""

from __future__ import annotations

import ast
import random
import warnings
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

from .exact import flattened, indices, numbers
from .forms import CALLS
from .functions import functional, others
from .libraries import np, torch
from .outcomes import Failed, Results, note
from .registry import ACROSS, WITHIN, check

GENERATOR = "numpy.random.Generator"
SIDE = 24


def values() -> dict[str, Any]:
    """Return what the names in a form of arguments of torch mean."""

    def n(*shape: int, salt: int = 0) -> torch.Tensor:
        return numbers(*shape, salt=salt)

    def i(below: int, salt: int = 0) -> torch.Tensor:
        return indices(SIDE * SIDE, below, salt=salt).view(SIDE, SIDE)

    x, y = (n(SIDE, SIDE, salt=salt).abs() * 0.9 + 0.05 for salt in (0, 1))
    s, k, sound, window = x @ x.T + SIDE * torch.eye(SIDE), i(SIDE, 4)[0], n(400), n(64).abs() + 0.1
    sparse = torch.where(x > 0.7, x, torch.zeros(())).to_sparse()
    (lu, pivots), (ld, swaps) = torch.linalg.lu_factor(s), torch.linalg.ldl_factor(s)
    return {
        "x": x,
        "y": y,
        "w": x + 1.5,
        "v": x[0],
        "u": y[0],
        "s": s,  # symmetric, positive definite
        "t": torch.tril(s),
        "i": i(SIDE),
        "j": 1 + i(SIDE - 1, 3),
        "k": k,
        "b": x > 0.5,
        "d": y > 0.5,
        "z": torch.complex(x, y),
        "m": n(SIDE, SIDE, salt=5),
        "L": [x, y],
        "a": n(3, 4, 6),
        "e": n(3, 6, 4, salt=2),
        "g": n(5, SIDE, SIDE),
        "c": n(2, 4, 8, 8),
        "cube": n(2, 4, 5, 5, 5),
        "square": n(4, 4),
        "squares": n(3, 4, 4),
        "three": n(3, 3),
        "five": n(5),
        "pairs": n(SIDE, 2),
        "tbc": n(2, 6, 5),
        **{f"k{d}": n(2, 4, *[3] * d) for d in (1, 2, 3)},  # of convolutions
        **{f"kt{d}": n(4, 2, *[3] * d) for d in (1, 2, 3)},
        "sound": sound,
        "window": window,
        "spectrum": torch.stft(sound, 64, window=window, return_complex=True),
        "lu": lu,
        "pivots": pivots,
        "ld": ld,
        "swaps": swaps,
        "k32": torch.zeros(SIDE, dtype=torch.int32),
        "array": x.numpy(),
        "sparse": sparse,
        "csr": sparse.to_sparse_csr(),
        "places": torch.stack((k, k)),
        "blocks": n(SIDE, 2, 2),
        "rows": torch.arange(SIDE + 1),
    }


def arrays(tensors: dict[str, Any]) -> dict[str, Any]:
    """Return what they mean for NumPy: the same numbers in double precision."""
    found: dict[str, Any] = {"sum": np.sum, "hypot": np.hypot, "triu": np.triu}
    for name, value in tensors.items():
        if isinstance(value, torch.Tensor) and value.layout == torch.strided:
            if value.is_complex() or value.is_floating_point():
                value = value.to(torch.complex128 if value.is_complex() else torch.float64)  # noqa: PLW2901
            found[name] = value.numpy()
    return {
        **found,
        "L": [found["x"], found["y"]],
        "indexes": (found["k"], found["k"]),
        "bytes": found["k"].astype("uint8"),
    }


def own(value: Any) -> Any:
    """Return a copy of an argument that the function may write to."""
    if isinstance(value, list):
        return [own(each) for each in value]
    if isinstance(value, torch.Tensor):
        return value.clone()
    return value.copy() if isinstance(value, np.ndarray) else value


def arguments(form: str, names: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a form."""
    positional, named = [], {}
    for word in form.split():
        key, _, text = word.rpartition("=")
        value = own(names[text]) if text in names else constant(text)
        if key:
            named[key] = value
        else:
            positional.append(value)
    return positional, named


def constant(text: str) -> Any:
    """Return a constant of torch, or a literal."""
    return getattr(torch, text[6:]) if text.startswith("torch.") else ast.literal_eval(text)


def dense(value: Any) -> Any:
    """Return a result whose tensors all have plain memory."""
    if isinstance(value, (tuple, list)):
        return tuple(map(dense, value))
    if not isinstance(value, torch.Tensor):
        return value
    if value._is_zerotensor():  # has no memory
        return torch.zeros(value.shape, dtype=value.dtype)
    value = value.to_dense() if value.layout != torch.strided else value
    value = value.dequantize() if value.is_quantized else value
    return value.resolve_conj().resolve_neg()


def tensors(value: Any) -> list[Any]:
    """Return the tensors in a result."""
    if isinstance(value, (tuple, list)):
        return [tensor for each in value for tensor in tensors(each)]
    return [value] if isinstance(value, torch.Tensor) else []


def with_own_gradients(function: Callable[..., Any], form: str, names: dict[str, Any]) -> object:
    """Return what a function gives, with the gradients of its inputs. Raises RuntimeError."""
    positional, named = arguments(form, names)
    inputs = [
        each for each in tensors(positional) if each.is_floating_point() and each.layout == torch.strided
    ]
    for value in inputs:
        value.requires_grad_()
    result = function(*positional, **named)
    outputs = [each for each in tensors(result) if each.requires_grad]
    seeds = [torch.ones_like(each) for each in outputs]
    found = torch.autograd.grad(outputs, inputs, grad_outputs=seeds, allow_unused=True) if outputs else ()
    return dense(result), dense(found)


def plain_call(function: Callable[..., Any], form: str, names: dict[str, Any]) -> object:
    """Return what a function gives, or what it wrote to where it returns nothing."""
    positional, named = arguments(form, names)
    result = function(*positional, **named)
    return dense(positional[0] if result is None and positional else result)


def called(name: str, form: str, names: dict[str, Any]) -> object:
    """Return what a function gives, with gradients where it has them."""
    if name.startswith("torch."):
        try:
            return with_own_gradients(public(name), form, names)
        except RuntimeError:  # it has none, or no deterministic one
            torch.manual_seed(5)
    return plain_call(public(name), form, names)


def public(name: str) -> Any:
    """Return a function by its public name."""
    if name.startswith(GENERATOR):
        return getattr(np.random.default_rng(5), name.rpartition(".")[2])
    first, *rest = name.split(".")
    module: Any = {"torch": torch, "numpy": np, "random": random}[first]
    return reduce(getattr, rest, module)


def calls() -> dict[str, Callable[[], object]]:
    """Return a call of each function that this torch and this NumPy have, by its public name."""
    names = values()
    forms = {"torch": names, "numpy": arrays(names), "random": {}}
    found: dict[str, Callable[[], object]] = {**functional(), **others()}
    for module, by_form in CALLS.items():
        known = forms[module.partition(".")[0]]
        for form, words in by_form.items():
            for word in words.split():
                name = f"{module}.{word}"
                try:
                    public(name)
                except AttributeError:  # of another version
                    continue
                found[name] = partial(called, name, form, known)
    return found


# torch.linalg.lstsq reads memory that it has not written, unless it is filled (pytorch/pytorch#187411).
@check(WITHIN, ACROSS, order=430, hooked=True)
def functions(_: str) -> Results:
    """Public functions of torch, NumPy and random repeat, with their gradients."""
    results: dict[str, object] = {}
    refused = []
    for name, call in calls().items():
        torch.manual_seed(5)
        np.random.seed(5)
        random.seed(5)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results[name] = flattened(call())
        except (TypeError, ValueError, RuntimeError, NotImplementedError, AttributeError) as error:
            refused.append(name)
            results[name] = type(error).__name__.encode()
    note(f"{len(results) - len(refused)} functions")
    if len(refused) > len(results) // 20:
        raise Failed(f"{len(refused)} of {len(results)} functions raise: {', '.join(refused[:20])}")
    if refused:
        note("not called, since this version takes other arguments: " + ", ".join(refused))
    return results
