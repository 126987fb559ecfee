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
