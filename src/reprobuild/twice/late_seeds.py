"""Seeds that a program sets after it has drawn: what was drawn before differs in each run. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from . import known_causes
from .external_values import Candidate, of_hint
from .records import ProgramLine, Source, Stream

_SEED = ".seed"


def late_seeds(streams: Sequence[tuple[Stream, Stream]], candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the lines that seed a module's generator for the first time, with the same value in both runs,
    after draws from it that differ.
    """
    drawn = {(each.name, each.place) for each in candidates if each.kind == "draw"}
    return list(dict.fromkeys(found for pair in streams for found in _of_process(*pair, drawn)))


def _of_process(one: Stream, other: Stream, drawn: set[tuple[str, ProgramLine]]) -> Iterator[Candidate]:
    for module, told in known_causes.LATE_SEEDS.items():
        seeds = [_first(stream.sources, module, is_seed=True) for stream in (one, other)]
        draw = _first(one.sources, module, is_seed=False, among=drawn)
        if draw is None or seeds[0] is None or seeds[1] is None:
            continue
        (at, seed), (_, again) = seeds[0], seeds[1]
        if draw[0] < at and (seed.value, seed.place) == (again.value, again.place):
            yield of_hint(told, seed.place)


def _first(
    sources: Sequence[Source],
    module: str,
    *,
    is_seed: bool,
    among: set[tuple[str, ProgramLine]] | None = None,
) -> tuple[int, Source] | None:
    for at, each in enumerate(sources):
        owner, _, function = each.name.partition(" in ")[0].rpartition(".")
        is_of = each.kind == "draw" and owner == module and (f".{function}" == _SEED) is is_seed
        if is_of and (among is None or (each.name, each.place) in among):
            return at, each
    return None
