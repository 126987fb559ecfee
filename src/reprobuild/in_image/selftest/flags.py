"""torch's deterministic flag and its version."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from .libraries import torch


def set_flag(*, on: bool) -> None:
    """Set torch's deterministic flag by the call that costs nothing, else by the public one (1.25 s)."""
    try:
        torch._C._set_deterministic_algorithms(on, warn_only=False)
    except (AttributeError, TypeError):
        torch.use_deterministic_algorithms(on)


AT_START: dict[str, bool] = {}
"""What `fill_memory` found in this process: whether torch filled new memory before."""


def fill_memory(*, on: bool = True) -> None:
    """Have torch fill new memory with NaN, so that an operation that reads what it has not written shows.

    Up to torch 2.1 it never does, and this does nothing. Keeps in `AT_START` what it found at first.
    """
    get = getattr(torch._C, "_get_deterministic_fill_uninitialized_memory", None)
    if get is not None:
        AT_START.setdefault("fill", get())
        torch._C._set_deterministic_fill_uninitialized_memory(on)


@contextlib.contextmanager
def setting(*, deterministic: bool, threads: int | None = None) -> Iterator[None]:
    """Set the deterministic flag (and the thread count) for a while."""
    before = torch.are_deterministic_algorithms_enabled(), torch.get_num_threads()
    try:
        set_flag(on=deterministic)
        if threads is not None:
            torch.set_num_threads(threads)
        yield
    finally:
        set_flag(on=before[0])
        torch.set_num_threads(before[1])


def version() -> tuple[int, int]:
    """Return torch's major and minor version, which decides some expectations."""
    major, minor = re.findall(r"\d+", torch.__version__)[:2]
    return int(major), int(minor)
