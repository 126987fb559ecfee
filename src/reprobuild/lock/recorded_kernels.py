"""Recorded choices of kernels that a locked torch cannot use: they were made with another one. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ..request.kernels import kinds, torch_versions
from .model import Lock


def unusable_records(lock: Lock) -> Iterator[str]:
    """Yield a line for each record of the request that was made with another torch than the lock has."""
    locked = lock.distributions.get("torch", "")
    choices = lock.request.kernels.choices
    for recorded, kind in zip(torch_versions(choices), kinds(choices), strict=True):
        if not _is_same(recorded, locked):
            yield (
                f"kernel-choices: the record for {kind} has no effect, since the lock has torch {locked}: "
                "record it again with `reprobuild run --record-kernels FILE IMAGE`"
            )


def _is_same(recorded: str, locked: str) -> bool:
    """Whether it is the same build: an index need not name the CUDA of a torch, which itself does."""
    (one, _, one_build), (other, _, other_build) = recorded.partition("+"), locked.partition("+")
    return one == other and (not one_build or not other_build or one_build == other_build)
