"""Exact inputs, exact comparisons."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from .libraries import np, torch
from .outcomes import Failed

KEPT = 32  # values of each float result that the report holds


def numbers(*shape: int, salt: int = 0, dtype: str = "float32", device: str = "cpu") -> torch.Tensor:
    """Return a tensor of values from -1 to 1 that are the same on every machine; no generator is involved.

    The values have 53 bits before they are rounded to ``dtype``: sums of shorter ones can be exact, and then
    hide a changed order of summation. From SplitMix64 (Steele, Lea, Flood 2014), in integers that wrap.
    """
    count = int(np.prod(shape, dtype=np.int64))
    z = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(salt << 32)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    unit = ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return torch.from_numpy(unit * 2 - 1).reshape(shape).to(getattr(torch, dtype)).to(device)


def indices(count: int, below: int, *, salt: int = 0, device: str = "cpu") -> torch.Tensor:
    """Return ``count`` int64 indices from 0 to ``below - 1``, the same on every machine."""
    unit = (numbers(count, salt=salt, dtype="float64") + 1) / 2
    return (unit * below).long().clamp_(max=below - 1).to(device)


def raw(value: Any) -> bytes:
    """Return the bytes of a result: those of a tensor or array as they lie in memory, in C order."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().contiguous()
        # NumPy has no bfloat16.
        value = (value.view(torch.int16) if value.dtype == torch.bfloat16 else value).numpy()
    if isinstance(value, (np.ndarray, np.generic)):
        return bytes(value.tobytes())
    return repr(value).encode()


def fingerprint(value: Any) -> str:
    """Return the sha256 of a result's shape, type and bytes, as 64 hex digits."""
    kind = f"{tuple(value.shape)} {value.dtype} " if hasattr(value, "dtype") else ""
    return hashlib.sha256(kind.encode() + raw(value)).hexdigest()


def kept(value: Any) -> dict[str, str] | None:
    """Return at most `KEPT` values of a float result, evenly spread, for the report; else None."""
    if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
        value = value.detach().cpu()
        flat = (torch.view_as_real(value) if value.is_complex() else value).reshape(-1)
    elif isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind == "f":
        flat = torch.from_numpy(np.ascontiguousarray(value)).reshape(-1)
    else:
        return None
    chosen = flat[:: max(1, -(-flat.numel() // KEPT))]
    return {"type": str(flat.dtype)[6:], "data": base64.b64encode(raw(chosen)).decode()}


def flattened(value: object) -> bytes:
    """Return the bytes of a result that may be nested in dicts, tuples and lists."""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    return b"".join(map(flattened, value)) if isinstance(value, (tuple, list)) else raw(value)


def difference(name: str, first: Any, second: Any) -> dict[str, str] | None:
    """Return None when two results have the same bytes, else what differs."""
    expected, got = fingerprint(first), fingerprint(second)
    if expected == got:
        return None
    what = name
    if hasattr(first, "shape") and hasattr(second, "shape") and first.shape == second.shape:
        a, b = doubles(first), doubles(second)
        differs = (a != b) & ~(np.isnan(a) & np.isnan(b))
        what += f": {int(differs.sum())} of {a.size} values"
        if differs.any():
            what += f", by {float(np.abs(a - b)[differs].max()):.3g} at most"
    return {"what": what, "expected": expected, "got": got}


def doubles(value: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """Return a tensor or array of any type as one of float64, or complex128, for a message."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        value = (value if value.is_complex() else value.double()).numpy()
    return np.asarray(value, dtype=np.complex128 if np.iscomplexobj(value) else np.float64)


def must_be(what: str, *, got: object, expected: object) -> None:
    """Raise `Failed` unless a setting is what it has to be."""
    if got != expected:
        raise Failed(
            f"{what} is {got}, expected {expected}",
            [{"what": what, "expected": str(expected), "got": str(got)}],
        )


def must_differ(what: str, first: object, second: object) -> None:
    """Raise `Failed` when two results that have nothing in common have the same bytes."""
    if raw(first) == raw(second):
        raise Failed(
            f"{what} gives the same numbers",
            [{"what": what, "expected": "different numbers", "got": "the same"}],
        )


def must_repeat(run: Callable[[], object], times: int) -> None:
    """Raise `Failed` when a function's result is not the same in so many runs."""
    first = run()
    for _ in range(times - 1):
        again = run()
        if flattened(first) != flattened(again):
            lines = [difference("result", first, again)] if hasattr(first, "dtype") else []
            raise Failed("it differs from run to run", [line for line in lines if line])
