"""Parse uv's refusals: a typed refusal, or an error that quotes uv.

Nothing else reads uv's words. They are those of uv-resolver's ``pubgrub/report.rs`` and
``resolver/availability.rs``, and of uv-distribution-types' ``prioritized_distribution.rs``
(https://github.com/astral-sh/uv/tree/main/crates). `tests/resolve/test_resolve_uv_refusal.py` holds them
against the oldest and the newest uv that ``pyproject.toml`` allows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from packaging.utils import canonicalize_name

from ..errors import ResolveError

REASONS = "the Python packages cannot be resolved: "
"""Precedes uv's reasons why no version fits."""
CORRECT = "correct the versions or names in the request"
"""The default hint."""

_MOST_LINES = 20
"""Of uv's reasons; of a large request it gives thousands."""


class Kind(Enum):
    """The cause of a refusal: the first of these that uv names."""

    UNKNOWN_NAME = "a package that no index has"
    WRONG_ABI = "a release with wheels for other Pythons only"
    MISSING_WHEELS = "a release without a wheel for this Python and machine"
    WRONG_PYTHON = "a package that requires another Python"
    CONTRADICTION = "requirements that contradict each other"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why uv finds no packages that fit."""

    causes: tuple[str, ...]
    """uv's sentences, line by line."""
    hints: tuple[str, ...] = ()
    """uv's own."""
    unknown: frozenset[str] = frozenset()
    """The packages that no index has, as the request spells them."""
    missing_wheels: frozenset[str] = frozenset()
    """The packages of which uv names a release without a wheel for this Python and machine."""
    only_sources: frozenset[str] = frozenset()
    """Those among them of which it names a release without any wheel."""
    wrong_abi: tuple[str, ...] = ()
    """``name==version`` of each release that has wheels for other Pythons only."""
    wrong_python: bool = False
    lacks_version: bool = False
    """Whether it names a version that is not there."""
    versions: frozenset[tuple[str, str]] = frozenset()
    """The packages, normalized, of the sentences that are shown, each with the versions that are meant."""

    @property
    def named(self) -> frozenset[str]:
        """The packages of the sentences that are shown, normalized."""
        return frozenset(name for name, _ in self.versions)

    @property
    def kind(self) -> Kind:
        """The cause."""
        if self.unknown:
            return Kind.UNKNOWN_NAME
        if self.wrong_abi:
            return Kind.WRONG_ABI
        if self.missing_wheels:
            return Kind.MISSING_WHEELS
        return Kind.WRONG_PYTHON if self.wrong_python else Kind.CONTRADICTION


class RefusedError(ResolveError):
    """uv finds no packages that fit, and says why."""

    def __init__(self, message: str, refusal: Refusal, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.refusal = refusal


class UnreachableError(ResolveError):
    """uv cannot reach an index. ``project``: the one whose page uv follows through no more redirects."""

    def __init__(self, message: str, *, hint: str = "", project: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.project = project


class UnreadError(ResolveError):
    """uv failed with a message that is not recognized, so the cause is unknown."""


def refused(said: str, *, backend: str | None = None) -> RefusedError | UnreachableError | UnreadError:
    """Return the error for uv's standard error, without secrets.

    ``backend`` is its name of an index of PyTorch's that it was asked for.
    """
    causes, hints = _paragraphs(said)
    if not causes or not _NO_SOLUTION.fullmatch(causes[0]):
        return _failed(said, causes, hints, backend)
    del causes[0]
    try:
        refusal = _read(causes, hints)
    except _UnknownWordsError as error:
        return _unread([*causes, *hints], f"{str(error)!r} is not among the words of uv that are known")
    more = [
        f"{found[1]} has no wheel for Linux: remove it, or add ; sys_platform != 'linux' to its requirement"
        for hint in hints
        if (found := _PLATFORMS.fullmatch(hint)) and not _LINUX.search(found[2])
    ]
    refusal = replace(refusal, hints=(*refusal.hints, *more))
    return RefusedError(REASONS + "\n".join(_cut(causes)), refusal)


def _failed(
    said: str, causes: Sequence[str], hints: Sequence[str], backend: str | None
) -> UnreachableError | UnreadError:
    """Return the error if uv failed before it resolved."""
    if backend is not None and "for '--torch-backend" in said:
        known = re.findall(r"\bcu[0-9]+\b", said.partition("possible values")[2])
        return UnreadError(
            f"uv knows no PyTorch index named {backend}",
            hint=f"it knows {', '.join(reversed(known))} and cpu; change cuda in the request",
        )
    unreached = [line for line in causes if _UNREACHED.search(line)]
    if not unreached:
        return _unread([*causes, *hints], "uv has failed in words that are not known")
    # The line that names the address, which retries put second, and the innermost cause.
    named = next((line for line in unreached if line.startswith("Failed to fetch: ")), unreached[0])
    lines = dict.fromkeys(line.removeprefix("Failed to fetch: ").strip("`") for line in (named, causes[-1]))
    where = "PyTorch's own index" if backend is not None else "an index"
    where = "a file" if _FILE.search(named) else where
    redirected = _REDIRECTED.match(named)
    return UnreachableError(
        f"{where} cannot be reached: {': '.join(lines)}",
        project=redirected and redirected[1],
        hint="check the network, and the addresses, proxies and logins in the settings of uv or pip"
        + ("; or take index out of the request" if backend is not None else ""),
    )


def _unread(lines: Sequence[str], why: str) -> UnreadError:
    quoted = "\n".join(_cut(lines)) or "uv has failed and said nothing"
    return UnreadError(
        REASONS + quoted,
        hint=f"{why}, so nothing is concluded from it: correct what uv names, if it is yours",
    )


def _cut(lines: Sequence[str]) -> list[str]:
    if len(lines) <= _MOST_LINES:
        return list(lines)
    return [*lines[:_MOST_LINES], f"and {len(lines) - _MOST_LINES} more lines of uv's reasons"]


_NO_SOLUTION = re.compile(r"No solution found when resolving dependencies:?")
_UNREACHED = re.compile(
    r"Failed to fetch|error sending request|dns error|Could not connect|Request failed after"
    r"|Missing `Content-Type` header"
)
_FILE = re.compile(r"\.(whl|zip|tar\.gz)\b")
_REDIRECTED = re.compile(r"Missing `Content-Type` header for `\S*/([^/\s]+)/`?$")
"""What uv says of a redirect that it follows no further, and of an answer without that header."""
_PLATFORMS = re.compile(r"Wheels are available for `(\S+)` \(\S+\) on the following platforms?: (.+)")
_LINUX = re.compile(r"linux|`any`")
_DRAWING = re.compile("[\u2500-\u25ff\u00d7]")
"""The lines and crosses that uv puts before a cause."""


def _paragraphs(said: str) -> tuple[list[str], list[str]]:
    """Return the lines of causes, and the hints; a hint may be several lines, up to an empty one."""
    causes: list[str] = []
    hints: list[str] = []
    is_hint = False
    for raw in said.splitlines():
        line = _DRAWING.sub(" ", raw).strip()
        if line.startswith("hint: "):
            hints.append(line.removeprefix("hint: "))
            is_hint = True
        elif line and is_hint:
            hints[-1] += f" {line}"
        elif line:
            causes.append(re.sub(r"^(error|cause|Caused by): ", "", line))
        else:
            is_hint = False
    return causes, hints


# --- uv's sentences ---

_BOUND = r"(?:===|==|>=|<=|!=|~=|<|>)\s?[^\s,]+"
_ITEM = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)(?:\[[^\]]*\])?(?:\{[^}]*\})?"
    rf"(?P<bound> @ \S+|\s?{_BOUND}(?:,\s?{_BOUND})*)?"
)
"""A package, with its extras, its marker, and the versions that are meant."""

_JOINT = re.compile(
    r"(?:And because|Because|we know from \(\d+\) that|we can conclude that|\(\d+\)|and|or"
    r"|(?:your|the) requirements(?: are unsatisfiable)?|you require"
    r"|there (?:is|are) no versions? of|only|the following versions of|(?:is|are) available:?"
    r"|depends? on|cannot be used|because|must be used|are incompatible"
    r"|all versions of|(?:all|any|one) of:|we are solving dependencies of"
    r"|depends on itself at an incompatible version"
    r"|the (?:requested|current) Python version \([^)]*\)|does not satisfy)(?![\w-])"
)
"""Text between package names that is ignored."""

_NO_WHEEL = re.compile(
    r"ha(?:s|ve) no (?:usable wheels|wheels with valid tags|(?:\S+-)?compatible wheels"
    r"|wheels with a variant supported on the current platform"
    r"|wheels with a matching (?P<tag>Python implementation|Python ABI|Python version|platform) tag)"
    r"(?: \(e\.g\., `[^`]*`\))?"
)
_NOT_FOUND = re.compile(r"(?:was|were) not found in (?:the package registry|the provided package locations)")
_PYTHON = re.compile(
    rf"(?:requires?|depends? on) Python\s?{_BOUND}(?:,\s?{_BOUND})*"
    r"|the (?:requested|current) Python version \([^)]*\)"
)
_OTHER = re.compile(
    r"(?:was|were) (?:yanked(?: \(reason: .*?\))?|published after the exclude newer time)"
    r"|(?:was|were) not found in the cache"
    r"|(?:does|do) not include a `METADATA` file|needs? to be downloaded from a registry"
    r"|ha(?:s|ve) (?:no publish time|no source distribution|no available distributions|invalid metadata"
    r"|inconsistent metadata|an invalid package format)"
)


_WORDS = (_PYTHON, _NO_WHEEL, _NOT_FOUND, _OTHER, _JOINT)


class _UnknownWordsError(Exception):
    """Words that the other patterns do not match."""


def _read(causes: Sequence[str], hints: Sequence[str]) -> Refusal:
    """Read uv's sentences word by word. Raises `_UnknownWordsError`."""
    unknown, missing, sources, abi = set[str](), set[str](), set[str](), list[str]()
    versions, shown = set[tuple[str, str]](), len(" ".join(causes[:_MOST_LINES]))
    is_python = lacks_version = False
    for at, subject, predicate in _clauses(" ".join(causes)):
        if at <= shown:
            versions |= {(str(canonicalize_name(name)), bound) for name, bound in subject if name != "Python"}
        names = {name for name, _ in subject}
        if (lacks := _NO_WHEEL.fullmatch(predicate)) is not None:
            missing |= names
            sources |= names if "usable" in predicate else set()
            if (lacks["tag"] or "").startswith("Python") and len(subject) == 1:
                abi += [name + bound for name, bound in subject if re.match(r"==[^=]", bound)]
        elif _NOT_FOUND.fullmatch(predicate):
            unknown |= names
        elif _PYTHON.fullmatch(predicate):
            is_python = True
        lacks_version |= predicate.startswith(("there is no version", "there are no version"))
    return Refusal(
        tuple(causes),
        tuple(hints),
        unknown=frozenset(unknown),
        missing_wheels=frozenset(missing),
        wrong_abi=tuple(dict.fromkeys(abi)),
        only_sources=frozenset(sources),
        wrong_python=is_python,
        lacks_version=lacks_version,
        versions=frozenset(versions),
    )


def _clauses(text: str) -> Iterator[tuple[int, list[tuple[str, str]], str]]:
    """Yield packages with their versions, the words after them, and the position of those."""
    subject: list[tuple[str, str]] = []
    at, is_said = 0, False
    while (at := _next(text, at)) < len(text):
        found = next(filter(None, (words.match(text, at) for words in _WORDS)), None)
        if found is not None:
            yield at, subject, found[0]
            subject, is_said = [], found.re is not _JOINT and found.re is not _PYTHON
        else:
            found = _ITEM.match(text, at)
            # Packages stand beside each other only in a list of the versions of one.
            if found is None or is_said or (subject and subject[-1][0] != found["name"]):
                raise _UnknownWordsError(text[at : at + 60])
            subject.append((found["name"], (found["bound"] or "").strip().rstrip(".")))
        at = found.end()
    yield at, subject, ""


def _next(text: str, at: int) -> int:
    while at < len(text) and text[at] in " ,.;":
        at += 1
    return at
