"""Whether two lists of requirements with markers are the same in every environment.

An image is one environment. A lock of uv is for all of them, and uv compares markers as formulas.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from packaging.markers import Marker
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from ..resolve.target import holds

MOST = 20_000
"""Environments that are tried for one package."""

_WORD = re.compile(r"\"[^\"]*\"|'[^']*'|[a-z_.]+")
_SYSTEMS = (
    ("linux", "Linux", "posix"),
    ("darwin", "Darwin", "posix"),
    ("win32", "Windows", "nt"),
    ("emscripten", "Emscripten", "posix"),
    ("other", "Other", "other"),
)
_IMPLEMENTATIONS = (("cpython", "CPython"), ("pypy", "PyPy"), ("graalpy", "GraalVM"), ("other", "Other"))
_OF_SYSTEM = ("sys_platform", "platform_system", "os_name")
_OF_IMPLEMENTATION = ("implementation_name", "platform_python_implementation")
_OF_PYTHON = ("python_full_version", "python_version", "implementation_version")


class AskedPackage(NamedTuple):
    """A requirement as both uv.lock and pyproject.toml have it, without its marker."""

    name: str
    extras: frozenset[str]
    versions: SpecifierSet
    at: str = ""
    """Another place than the usual index: the kind, and what tells two of a kind apart."""

    def __str__(self) -> str:
        """Return it as a message names it."""
        extras = f"[{','.join(sorted(self.extras))}]" if self.extras else ""
        return f"{self.name}{extras}{self.versions}{f' from {self.at}' if self.at else ''}"


class MarkedLine(NamedTuple):
    """What is asked for, and where that counts."""

    asked: AskedPackage
    when: tuple[Marker, ...]
    """Markers that must all be true."""
    unless: tuple[Marker, ...] = ()
    """Markers of earlier sources, which take precedence where they are true."""
    extra: str | None = None
    """That of pyproject.toml; in a lock it is in the marker."""


def are_same(asked: Sequence[MarkedLine], locked: Sequence[MarkedLine], pythons: SpecifierSet) -> bool:
    """Whether lines on one package ask for the same.

    Only some Pythons count, unless the lines ask for nothing there. False for what cannot be tried.
    """
    if _written(asked) == _written(locked):
        return True
    every = [each for line in (*asked, *locked) for each in (*line.when, *line.unless)]
    every += [Marker(f"extra == '{line.extra}'") for line in asked if line.extra is not None]
    every += [] if (own := python_marker(pythons)) is None else [own]
    found = []
    try:
        for here in map(plain, environments(every)):
            pair = [_active(lines, here) for lines in (asked, locked)]
            found.append((pair, pythons.contains(here["python_full_version"], prereleases=True)))
    except LookupError:
        return False
    counting = [pair for pair, is_here in found if is_here]
    pairs = counting if any(map(any, counting)) else [pair for pair, _ in found]
    return all(now == then for now, then in pairs)


def _written(lines: Sequence[MarkedLine]) -> set[object]:
    """Return lines as they are written: equal for most that are the same, and without a trial."""
    found: set[object] = set()
    for line in lines:
        parts = [str(each) for each in line.when] + (
            [] if line.extra is None else [f'extra == "{line.extra}"']
        )
        if not any(" or " in part for part in parts):
            parts = [one for part in parts for one in part.split(" and ")]
        found.add((line.asked, frozenset(parts), frozenset(map(str, line.unless))))
    return found


def _active(lines: Sequence[MarkedLine], here: Mapping[str, str]) -> set[AskedPackage]:
    return {
        line.asked
        for line in lines
        if line.extra in (None, here["extra"])
        and all(holds(each, here) for each in line.when)
        and not any(holds(each, here) for each in line.unless)
    }


def environments(markers: Iterable[Marker]) -> Iterator[dict[str, str]]:
    """Yield environments that tell some markers apart: with each value that they name, and others.

    Raises `LookupError` where these are too many to try.
    """
    named: dict[str, set[str]] = {}
    for marker in markers:
        # What a marker compares is a variable and a string, in either order.
        words = [word for word in _WORD.findall(str(marker)) if word not in ("and", "or", "in", "not")]
        for one, two in zip(words[::2], words[1::2], strict=False):
            variable, value = (two, one) if one[0] in "\"'" else (one, two)
            # What is compared by `in` is a list in one string.
            whole = () if variable in (*_OF_SYSTEM, *_OF_IMPLEMENTATION) else (value[1:-1],)
            named.setdefault(variable, set()).update((*whole, *value[1:-1].split()))
    groups: list[list[dict[str, str]]] = []
    for variables, known in ((_OF_SYSTEM, _SYSTEMS), (_OF_IMPLEMENTATION, _IMPLEMENTATIONS)):
        values = [value for each in variables for value in named.pop(each, ())]
        rows = [dict(zip(variables, row, strict=True)) for row in known]
        new = {value.lower() for value in values} - {text.lower() for row in known for text in row}
        rows += [dict(zip(variables, (value, value.title(), "posix"), strict=False)) for value in sorted(new)]
        groups.append(rows if values else rows[:1])
    texts = [text for each in _OF_PYTHON for text in named.pop(each, ())]
    groups.append(
        [
            {"python_full_version": full, "python_version": ".".join(full.split(".")[:2])}
            for full in beside(texts)
        ]
    )
    for variable, found in sorted(named.items()):
        groups.append([{variable: value} for value in sorted({*found, ""})])
    count = 1
    for group in groups:
        count *= len(group)
    if count > MOST:
        raise LookupError(f"{count} environments")
    for parts in product(*groups):
        yield {key: value for part in parts for key, value in part.items()}


def beside(texts: Iterable[str]) -> list[str]:
    """Return Python versions in order: those in some texts, and the next ones before and after each."""
    found = {(3, 11, 5)}
    for text in texts:
        try:
            release = Version(text.removesuffix(".*").strip()).release
        except InvalidVersion:
            continue
        major, minor, patch = (*release, 0, 0)[:3]
        found |= {
            *((major, minor, patch), (major, minor, patch + 1), (major, minor + 1, 0), (major + 1, 0, 0)),
            *((major, minor, max(patch - 1, 0)), (major, minor, 99)),
            (major, minor - 1, 99) if minor else (max(major - 1, 0), 99, 99),
        }
    return [".".join(map(str, each)) for each in sorted(found)]


def bounds(specifiers: Sequence[SpecifierSet], *others: SpecifierSet) -> tuple[str, str]:
    """Return the first and the last Python that fits all of some specifiers.

    Tried are those beside the bounds of these and of ``others``, so that two such results compare.
    """
    every = beside(each.version for one in (*specifiers, *others) for each in one)
    fitting = [
        version for version in every if all(each.contains(version, prereleases=True) for each in specifiers)
    ]
    return (fitting[0], fitting[-1]) if fitting else ("", "")


def python_marker(specifiers: SpecifierSet) -> Marker | None:
    """Return the marker for Pythons that fit; None for all."""
    parts = [f"python_full_version {each.operator} '{each.version}'" for each in specifiers]
    return Marker(" and ".join(sorted(parts))) if parts else None


def plain(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with every variable that a marker can name."""
    empty = dict.fromkeys(("platform_machine", "platform_release", "platform_version", "extra"), "")
    version = environment.get("python_full_version", "3.11.5")
    return {**empty, "implementation_version": version, **environment}
