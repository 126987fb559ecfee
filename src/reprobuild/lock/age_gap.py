"""A torch that is years newer than all packages that the request pins: the pins may be of another time."""

from __future__ import annotations

from datetime import timedelta

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .model import Lock

_YEARS = timedelta(days=2 * 365)
_LEAST_PINS = 3


def age_gap(lock: Lock) -> str:
    """Return a line if a request leaves torch open and all its pins are years older; else nothing."""
    pins = {
        canonicalize_name(requirement.name)
        for requirement in map(Requirement, lock.request.packages)
        if any(each.operator in ("==", "===") for each in requirement.specifier)
    }
    times = {p.name: p.wheel.uploaded for p in lock.python if p.wheel.uploaded is not None}
    pinned = [times[name] for name in pins if name in times]
    if lock.request.torch is not None or "torch" not in times or len(pinned) < _LEAST_PINS:
        return ""
    newest = max(pinned)
    if times["torch"] - newest < _YEARS:
        return ""
    return (
        f"torch {lock.distributions['torch']} is from {times['torch']:%Y-%m}, and the newest of the "
        f"{len(pinned)} pinned packages from {newest:%Y-%m}: it may not fit them. --as-of {newest:%Y-%m-%d} "
        "or --torch takes one of that time"
    )
