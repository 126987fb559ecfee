"""Ranks of one run that draw the same random numbers, as one seed for all makes them. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from .records import Stream


def same_draws(streams: Sequence[Stream]) -> list[str]:
    """Return a note for each generator of whose numbers two ranks took the same while they computed."""
    alike: dict[tuple[str, tuple[str, ...]], dict[str, None]] = defaultdict(dict)
    for stream in streams:
        if stream.rank and not stream.worker:
            for name, states in _states(stream).items():
                if len(set(states)) > 1:  # it drew between two steps
                    alike[name, states][stream.rank] = None
    return [
        f"ranks {', '.join(sorted(ranks, key=_order))} drew the same random numbers of {name} from step to"
        " step: each drops and augments as the others do; determinism.seed-by-rank gives each its own seed"
        for (name, _), ranks in sorted(alike.items())
        if len(ranks) > 1
    ]


def _order(rank: str) -> tuple[int, str]:
    return len(rank), rank  # a stranger's text, and as a rule a number


def _states(stream: Stream) -> dict[str, tuple[str, ...]]:
    """Return the digests of each generator's states at the steps of a process, by its name."""
    found: dict[str, list[str]] = defaultdict(list)
    for moment in stream.moments:
        for part in moment.parts if moment.kind == "step" else ():
            if part.name.startswith("random "):
                found[part.name.removeprefix("random ")].append(part.digest)
    return {name: tuple(states) for name, states in found.items()}
