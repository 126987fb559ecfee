"""Suggest known names similar to a package that no index has."""

from __future__ import annotations

import difflib

from ...sources.known_packages import IMPORTED_AS, OFTEN_ASKED_FOR
from .case import Advice, Case


def near_names(name: str) -> list[str]:
    """Return at most three packages with a similar name, the nearest first."""
    if meant := IMPORTED_AS.get(name):
        return [meant]
    return difflib.get_close_matches(name, OFTEN_ASKED_FOR, n=3, cutoff=0.8)


def advise(case: Case) -> Advice:
    """Name what may be meant by the packages that no index has."""
    unknown = sorted(case.refusal.unknown) if case.refusal is not None else []
    near = {name: near_names(name) for name in unknown}
    return Advice(
        lines=tuple(f"{n}: did you mean {' or '.join(meant)}?" for n, meant in near.items() if meant)
    )
