"""Rows of a batch: which arguments have them, batches of chosen rows, and how far two rows are apart."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

DEPTH = 8
"""How deep nested arguments and answers are followed."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_REAL = ("attention_mask",)
"""Ends of names of masks that are true where a sequence has a value."""
_PADDED = ("padding_mask", "pad_mask")
"""Ends of names of masks that are true where it has none."""


class Unknown(Exception):  # noqa: N818 -- says what, not that something failed
    """What makes that nothing can be said of a model's rows."""


class Call:
    """What a module was called with, kept as it was, since a call may change it."""

    def __init__(self, torch: Any, module: Any, args: Any, kwargs: Any) -> None:
        self._torch = torch
        self._objects: dict[int, str] = {}
        self.same_as: dict[str, str] = {}
        """For each tensor the first name by which it is given."""
        self._args = [self._kept(each, name) for name, each in zip(_names(module, args), args)]
        self._kwargs = {name: self._kept(each, name) for name, each in kwargs.items()}
        self.axes: dict[str, int] = {}
        """The axis of the rows in each argument that has them; others are the same in all batches."""

    def tensors(self) -> dict[str, Any]:
        """Return the tensors among the arguments by their names, in their order."""
        return {path: value for path, value in self._walk() if isinstance(value, self._torch.Tensor)}

    def _walk(self) -> Iterator[tuple[str, Any]]:
        for kept in (*self._args, *self._kwargs.values()):
            yield from _leaves(kept)

    def made(self, change: Callable[[str, Any], Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return arguments for another call; ``change`` gives each tensor, by its name."""
        return (
            [_built(kept, change) for kept in self._args],
            {name: _built(kept, change) for name, kept in self._kwargs.items()},
        )

    def _kept(self, value: Any, path: str, depth: int = 0) -> _Kept:
        torch = self._torch
        kind = type(value)
        if isinstance(value, torch.Tensor):
            if kind not in (torch.Tensor, torch.nn.Parameter) or value.layout is not torch.strided:
                raise Unknown(f"argument {path} is a {kind.__name__} with the layout {value.layout}")
            if value.is_nested or value.is_quantized:
                raise Unknown(f"argument {path} is a nested or quantized tensor")
            self.same_as[path] = self._objects.setdefault(id(value), path)
            kept = value.detach().clone()
            return _Kept(path, kept.requires_grad_() if value.requires_grad else kept)
        if depth < DEPTH and kind in (list, tuple):
            parts = [self._kept(each, f"{path}[{at}]", depth + 1) for at, each in enumerate(value)]
            return _Kept(path, parts, kind)
        if depth < DEPTH and isinstance(value, Mapping) and hasattr(value, "__setitem__"):
            table = {key: self._kept(each, f"{path}.{key}", depth + 1) for key, each in value.items()}
            return _Kept(path, table, lambda items: _filled(value, items))
        memo: dict[int, Any] = {}
        try:
            kept = copy.deepcopy(value, memo)
        except Exception as error:
            raise Unknown(f"argument {path} ({kind.__name__}) cannot be copied: {error}") from error
        if any(isinstance(each, torch.Tensor) for each in memo.values()):
            raise Unknown(
                f"argument {path} is a {kind.__name__} that holds tensors, whose rows are not known"
            )
        return _Kept(path, kept)


class _Kept:
    """An argument: a leaf, or parts with what puts them together."""

    def __init__(self, path: str, value: Any, build: Callable[[Any], Any] | None = None) -> None:
        self.path, self.value, self.build = path, value, build


def _leaves(kept: _Kept) -> Iterator[tuple[str, Any]]:
    if kept.build is None:
        yield kept.path, kept.value
        return
    parts = kept.value.values() if isinstance(kept.value, dict) else kept.value
    for part in parts:
        yield from _leaves(part)


def _built(kept: _Kept, change: Callable[[str, Any], Any]) -> Any:
    if kept.build is None:
        if hasattr(kept.value, "storage_offset"):  # a tensor
            return change(kept.path, kept.value)
        return copy.deepcopy(kept.value)
    if isinstance(kept.value, dict):
        return kept.build({key: _built(part, change) for key, part in kept.value.items()})
    return kept.build([_built(part, change) for part in kept.value])


def _filled(like: Any, items: dict[Any, Any]) -> Any:
    made = copy.copy(like)
    for key, each in items.items():
        made[key] = each
    return made


def _names(module: Any, args: Any) -> list[str]:
    """Return the names of positional arguments, as ``forward`` has them."""
    try:
        parameters = list(inspect.signature(module.forward).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [*positional, *(f"argument {at}" for at in range(len(positional), len(args)))][: len(args)]


def chosen(torch: Any, tensor: Any, axis: int, rows: list[int], zeros: int = 0) -> Any:
    """Return a tensor of some rows of another, and of so many rows of zeros after them."""
    found = tensor.detach().index_select(axis, torch.tensor(rows, device=tensor.device))
    if zeros:
        shape = list(found.shape)
        shape[axis] = zeros
        found = torch.cat([found, found.new_zeros(shape)], axis)
    for dimensions, form in ((4, torch.channels_last), (5, torch.channels_last_3d)):
        if (
            tensor.dim() == dimensions
            and tensor.is_contiguous(memory_format=form)
            and not tensor.is_contiguous()
        ):
            found = found.contiguous(memory_format=form)
    return found.requires_grad_() if tensor.requires_grad else found


def answers(torch: Any, value: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the tensors of an answer by their names, and the names of what is not followed."""
    found: dict[str, Any] = {}
    unread: list[str] = []

    def walk(value: Any, path: str, depth: int) -> None:
        if isinstance(value, torch.Tensor):
            if value.layout is not torch.strided or value.is_nested or value.is_quantized:
                unread.append(f"{path or 'answer'} ({type(value).__name__} of another layout)")
            else:
                found[path] = value.detach().clone()
        elif isinstance(value, _PLAIN):
            return
        elif depth < DEPTH and isinstance(value, Mapping):
            for key, each in value.items():
                walk(each, f"{path}.{key}".lstrip("."), depth + 1)
        elif depth < DEPTH and isinstance(value, (list, tuple)):
            for at, each in enumerate(value):
                walk(each, f"{path}[{at}]", depth + 1)
        elif depth < DEPTH and getattr(type(value), "__dataclass_fields__", None):
            for name in type(value).__dataclass_fields__:
                walk(getattr(value, name, None), f"{path}.{name}".lstrip("."), depth + 1)
        else:
            unread.append(f"{path or 'answer'} ({type(value).__name__})")

    walk(value, "", 0)
    return found, unread


def scaling(first: Any, one: int, second: Any, other: int) -> tuple[list[int], list[int]]:
    """Return the axes along which a shape grows with the number of rows, and those that differ otherwise."""
    if len(first) != len(second):
        return [], [-1]
    grows, odd = [], []
    for axis, (a, b) in enumerate(zip(first, second)):
        if a != b and a * other == b * one and a % one == 0:
            grows.append(axis)
        elif a != b:
            odd.append(axis)
    return grows, odd


def pieces(torch: Any, tensor: Any, axis: int, rows: int, at: int) -> list[Any]:
    """Return one row's part of a tensor, where an axis has several entries of each: together, or in turns."""
    each = tensor.shape[axis] // rows
    found = [tensor.narrow(axis, at * each, each)]
    if each > 1:
        turns = torch.arange(at, tensor.shape[axis], rows, device=tensor.device)
        found.append(tensor.index_select(axis, turns))
    return found


def same(torch: Any, one: Any, other: Any) -> bool:
    """Whether two tensors have the same type, shape and bytes."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return bool(torch.equal(_bytes(torch, one), _bytes(torch, other)))


def _bytes(torch: Any, value: Any) -> Any:
    value = value.detach()
    if value.is_complex():
        value = torch.view_as_real(value.resolve_conj())
    return value.contiguous().reshape(-1).view(torch.uint8)


def distance(torch: Any, one: Any, other: Any) -> tuple[int, float]:
    """Return the largest distance in units in the last place, and as a share of the largest value.

    -1 and infinity where there is none: other shapes, numbers that are not floats, NaN on one side.
    """
    none = -1, float("inf")
    if one.shape != other.shape or one.dtype != other.dtype or not one.numel():
        return none
    if not (one.is_floating_point() or one.is_complex()):
        return none
    if one.is_complex():
        one, other = torch.view_as_real(one.resolve_conj()), torch.view_as_real(other.resolve_conj())
    one, other = one.detach().cpu().contiguous(), other.detach().cpu().contiguous()
    integers = {8: torch.int64, 4: torch.int32, 2: torch.int16}.get(one.element_size())
    nan = one.isnan() & other.isnan()
    if integers is None or bool((one.isnan() ^ other.isnan()).any()):
        return none
    a, b = (_ordered(torch, each.reshape(-1).view(integers)) for each in (one, other))
    steps = ((a - b).abs().reshape(nan.shape)).masked_fill(nan, 0)
    first, second = one.double().masked_fill(nan, 0), other.double().masked_fill(nan, 0)
    largest = float(first.abs().max())
    apart = float((first - second).nan_to_num(0.0).abs().max())
    return int(steps.max()), apart / largest if largest else (0.0 if not apart else float("inf"))


def _ordered(torch: Any, bits: Any) -> Any:
    """Return the bits of floats as numbers of the same order."""
    lowest = torch.iinfo(bits.dtype).min
    wide = bits.to(torch.int64)
    return torch.where(wide < 0, lowest - wide, wide)


def mask_of(call: Call) -> tuple[str, Any, bool] | None:
    """Return the name of the mask of padded sequences, where each has values, and whether it is inverted.

    Only where its name says what it is, each row's values are together at the start or at the end, and the
    rows are the first axis. None: there is none that is known.
    """
    for path, tensor in call.tensors().items():
        name = path.rpartition(".")[2].lower()
        inverted = name.endswith(_PADDED)
        if not (inverted or name.endswith(_REAL)) or call.axes.get(path) != 0 or tensor.dim() != 2:
            continue
        if tensor.is_floating_point() or not bool(((tensor == 0) | (tensor == 1)).all()):
            continue
        real = (tensor == 0) if inverted else (tensor != 0)
        turns = (real[:, 1:] != real[:, :-1]).sum(1)
        if bool((turns <= 1).all()) and bool(real.any(1).all()):
            return path, real.cpu(), inverted
    return None
