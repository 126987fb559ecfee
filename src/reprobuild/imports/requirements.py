"""Import requirements.txt: https://pip.pypa.io/en/stable/reference/requirements-file-format/."""

from __future__ import annotations

import itertools
import os
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..errors import RequestError
from ..host.machine import architecture
from ..request.model import PYTHONS
from .addresses import is_address, requirement_at
from .common import Imported, requirement_of
from .indexes import NamedIndexes
from .project_files import read_text
from .target_system import holds, target

_COMMENT = re.compile(r"(?<!\S)#.*")
_HASH = re.compile(r"\s--hash[= ]([a-z0-9]+):([0-9a-fA-F]+)")
_FILES = ("-r", "--requirement", "-c", "--constraint")
_INDEXES = ("-i", "--index-url", "--pypi-url", "--extra-index-url", "-f", "--find-links")
_OF_CONDA = re.compile(r"@EXPLICIT|[\w.-]+=[^=\s]+=[^=\s]+")
"""What ``conda list --explicit`` begins with, and a line of ``conda list --export``."""
_HARMLESS = ("--require-hashes", "--use-feature", "--no-build-isolation", "--trusted-host")
_INSTEAD = {
    "--pre": "a pre-release counts only where one is named, or there is nothing else",
    "--no-binary": "wheels are taken where there are any",
    "--only-binary": "give --only-wheels to refuse what has no wheel",
    "--prefer-binary": "the newest version counts, with a wheel or without",
    "--no-index": "which indexes are asked is a setting of this machine",
}
"""Options that change what pip installs, and what holds here."""
_EDITABLE = ("-e", "--editable")
_WITH_VALUE = (
    *(*_FILES, *_EDITABLE, *_INDEXES),
    *("--only-binary", "--no-binary", "--use-feature", "--trusted-host"),
)
_SHORT = ("-r", "-c", "-e", "-i", "-f")
_BLANKS = re.compile(r"\s{9,}")
"""More of them in a row mean nothing, and expressions that look for an end of them take quadratic time."""
_OF_A_BUILD = re.compile(
    r"\s--(config-settings?|global-option|install-option|build-option)(=|\s+)(\"[^\"]*\"|'[^']*'|\S+)"
)
"""Options of one requirement that only the build of a source package heeds."""

_VARIABLE = re.compile(r"\$\{[A-Z0-9_]+\}")
"""https://pip.pypa.io/en/stable/reference/requirements-file-format/#using-environment-variables."""

_COMPILED_FOR = re.compile(
    r"(?i)pip-compile with python (3\.\d+)"
    r"|uv pip compile\s(?:.*\s)?(?:--python-version|--python|-p)[= ](3\.\d+)"
)
"""What pip-compile and uv write at the top of a file."""
_COMPILED_ON = re.compile(r"(?i)uv pip compile\s(?:.*\s)?--python-platform[= ]([\w-]+)")
_MOST_NAMES = 5
_MOST_HEAD, _LONGEST = 20, 2000
"""Lines, and characters of each, that are read for how a file was made."""
_MOST_FILES = 200
"""That one file includes, each as often as it is included."""


def read_requirements(file: Path, hosts: Collection[str] = (), *, included: bool = False) -> Imported:
    """Read a requirements file, and those that it names with ``-r`` and ``-c``.

    What a constraints file pins counts where something requires the package. ``hosts`` are those whose
    indexes the user allows the file to name. Raises `RequestError` that names file and line. No line of an
    ``included`` file, which another one names, is quoted: it may be one of secrets.
    """
    name = re.sub(r"^requirements[-_.]?", "", file.stem)
    return imported_lines([], file, hosts, name=name, included=included)


def imported_lines(
    lines: Sequence[str],
    file: Path,
    hosts: Collection[str] = (),
    *,
    name: str = "",
    included: bool = False,
) -> Imported:
    """Read lines in the form of a requirements file, found in ``file``; by default the whole file.

    Raises `RequestError`.
    """
    reader = _Reader(hosts)
    if lines:
        for line in lines:
            reader.line(line, f"{file}: pip", file.parent, constraint=False)
    else:
        reader.read(file, constraint=False, included=included)
    asked: dict[str, list[Requirement]] = {}
    for requirement in reader.requirements:
        asked.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    found = list(reader.requirements)
    for constraint in reader.constraints:
        found += _held(constraint, asked.get(canonicalize_name(constraint.name), ()))
    return Imported(
        origin=str(file),
        name=name or file.absolute().parent.name,
        requirements=tuple(found),
        places=reader.places,
        lines=reader.lines,
        constraints=tuple(
            str(c) for c in reader.constraints if canonicalize_name(c.name) not in asked and c.url is None
        ),
        hashes={package: frozenset(values) for package, values in sorted(reader.hashes.items())},
        ignored=(
            *reader.ignored,
            *_line_on_hashes(reader),
            *(
                f"{reader.places[canonicalize_name(c.name)]}: the constraint {c} is ignored: one with an "
                "address counts only for what the file itself asks for"
                for c in reader.constraints
                if canonicalize_name(c.name) not in asked and c.url is not None
            ),
        ),
        **reader.indexes.found,
    )


def of_compiled(found: Imported, file: Path, given: str | None) -> Imported:
    """Return what is imported with the Python that the file was compiled for, by its own first lines.

    Such a file has only what that Python needs. One made by ``uv pip compile --universal`` is for all.
    """
    head = itertools.takewhile(
        lambda line: line.startswith("#") or not line.strip(), read_text(file).split("\n")
    )
    text = "\n".join(line[:_LONGEST] for line in itertools.islice(head, _MOST_HEAD))
    if "--universal" in text:
        return found
    platform = _COMPILED_ON.search(text)
    if platform is not None and not _is_here(platform[1]):
        line = (
            f"{file}: was compiled for {platform[1]}: what only another platform needs may be missing in it"
        )
        found = replace(found, ignored=(*found.ignored, line))
    form = _COMPILED_FOR.search(text)
    if form is None:
        return found
    python = form[1] or form[2]
    if python in PYTHONS and given in (None, python):
        line = f"{file}: was compiled for Python {python}, so the image has it"
        return replace(found, python=python, applied=(*found.applied, line))
    line = f"{file}: was compiled for Python {python}: what only another one needs may be missing in it"
    return replace(found, ignored=(*found.ignored, line))


def _is_here(platform: str) -> bool:
    """Whether a platform of uv's is Linux with glibc, on a machine like this; ``linux`` is x86_64 for uv."""
    names = {"amd64": "x86_64", "arm64": "aarch64"}
    whole = "x86_64-unknown-linux-gnu" if platform == "linux" else platform
    return whole.startswith(names[architecture()]) and re.search("manylinux|linux-gnu", whole) is not None


def _line_on_hashes(reader: _Reader) -> Iterator[str]:
    """Yield a line on packages without a hash that pip would refuse: others have one, or the file demands it.

    https://pip.pypa.io/en/stable/topics/secure-installs/#hash-checking-mode
    """
    pythons = [target(each).markers for each in PYTHONS]
    bare = [
        name
        for each in reader.requirements
        if (name := canonicalize_name(each.name)) not in reader.hashes
        and "sha256=" not in (each.url or "").partition("#")[2]
        and any(holds(each.marker, markers) is not False for markers in pythons)
    ]
    if bare and (reader.hashes or reader.wants_hashes):
        names = sorted(set(bare))
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        said = f"{', '.join(names[:_MOST_NAMES])}{more} {'have' if names[1:] else 'has'} no hash"
        yield f"{reader.places[bare[0]]}: {said}, so pip refuses the file; what the index has now is locked"


def _held(constraint: Requirement, asked: Sequence[Requirement]) -> Iterator[Requirement]:
    """Yield a constraint on what is asked for by name as a requirement, under their markers."""
    if any(requirement.marker is None for requirement in asked):
        yield constraint
        return
    for marker in sorted({str(each.marker) for each in asked}):
        held = Requirement(str(constraint))
        held.marker = Marker(marker if held.marker is None else f"({held.marker}) and ({marker})")
        yield held


class _Reader:
    def __init__(self, hosts: Collection[str]) -> None:
        self.ignored: dict[str, None] = {}
        """Lines about settings without effect here, each once."""
        self.requirements: list[Requirement] = []
        self.constraints: list[Requirement] = []
        self.hashes: dict[str, set[str]] = {}
        self.places: dict[str, str] = {}
        self.lines: dict[str, str] = {}
        self.indexes = NamedIndexes(hosts)
        self.wants_hashes = False
        self._open: list[str] = []
        self._files = 0
        self._told: RequestError | None = None

    def read(self, file: Path, *, constraint: bool, included: bool = True) -> None:
        try:
            text = self._opened(file)
        except RequestError as error:
            self._told = error
            raise
        for number, line in _lines(text):
            place = f"{file}:{number}"
            try:
                self.line(line, place, file.parent, constraint=constraint)
            except RequestError as error:
                if not included or error is self._told:
                    raise
                self._told = RequestError(
                    f"{place}: a line of an included file that cannot be read as a requirement",
                    hint=f"to see what is wrong with it, import {file} itself",
                )
                raise self._told from None
        self._open.pop()

    def _opened(self, file: Path) -> str:
        text, real = read_text(file), os.path.realpath(file)
        if real in self._open:
            raise RequestError(f"{file}: includes itself with -r or -c")
        self._files += 1
        if self._files > _MOST_FILES:
            raise RequestError(f"{file}: more than {_MOST_FILES} files are included with -r and -c")
        self._open.append(real)
        return text

    def line(self, line: str, place: str, folder: Path, *, constraint: bool) -> None:
        line = _BLANKS.sub(" ", line)
        if line.startswith("-"):
            self._option(line, place, folder, constraint=constraint)
            return
        hashes = _HASH.findall(line)
        for option in _OF_A_BUILD.finditer(line):
            self.ignored[f"{place}: --{option[1]} is ignored: options of one build are not passed on"] = None
        text = _OF_A_BUILD.sub("", _HASH.sub("", line)).strip()
        if " --" in text:
            raise RequestError(f"{place}: the option {text.partition(' --')[2]!r} is not supported")
        if (variable := _VARIABLE.search(text)) is not None:
            raise RequestError(
                f"{place}: {variable[0]} is a variable of the environment, which pip replaces",
                hint="write its value, but no login: that belongs in ~/.netrc",
            )
        if _OF_CONDA.fullmatch(text):
            raise RequestError(
                f"{place}: {text!r} is a line of `conda list`, not of pip's",
                hint="in that environment, write what --from takes: `conda env export > environment.yml`",
            )
        found = requirement_at(text, place, folder) if is_address(text) else requirement_of(text, place)
        requirement = self.indexes.pinned(found)
        good = {value.lower() for kind, value in hashes if kind == "sha256"}
        if hashes and not good:
            raise RequestError(f"{place}: {requirement.name}: no sha256 among its hashes", hint="add one")
        self.places.setdefault(canonicalize_name(requirement.name), place)
        self.lines.setdefault(str(requirement), place)
        (self.constraints if constraint else self.requirements).append(requirement)
        if good:
            self.hashes.setdefault(canonicalize_name(requirement.name), set()).update(good)

    def _option(self, line: str, place: str, folder: Path, *, constraint: bool) -> None:
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise RequestError(f"{place}: {line!r}: {error}") from None
        while words:
            word = words.pop(0)
            option, equals, value = word.partition("=")
            self.wants_hashes |= option == "--require-hashes"
            if option[:2] in _SHORT and option[2:3] not in ("", "-"):
                option, value = word[:2], word[2:]  # -rmore.txt
            elif not equals and option in _WITH_VALUE and words:
                value = words.pop(0)
            if option in _FILES and value:
                if "://" in value:
                    raise RequestError(f"{place}: {value} is not a local file", hint="download it")
                self.read(folder / value, constraint=constraint or option in _FILES[2:])
            elif option in _INDEXES:
                if option in ("-f", "--find-links") and value and "://" not in value:
                    value = (folder / value).resolve().as_uri()
                self.indexes.add(option, value, place)
            elif option in _EDITABLE and value:
                # The rest of the line, in which an address may have extras with blanks, and a marker.
                text = " ".join([value, *words])
                self.line(
                    text if is_address(text) or "@" in text else f"./{text}",
                    place,
                    folder,
                    constraint=constraint,
                )
                return
            elif option in _INSTEAD:
                what = option if option in ("--pre", "--prefer-binary", "--no-index") else f"{option} {value}"
                self.ignored[f"{place}: {what} is ignored: {_INSTEAD[option]}"] = None
            elif option not in _HARMLESS:
                raise RequestError(f"{place}: the option {option} is not supported", hint="remove the line")


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers: those that end in a backslash joined, comments taken out."""
    joined, first = "", 0
    for number, raw in enumerate([*text.splitlines(), ""], 1):
        first = first or number
        if raw.endswith("\\") and not raw.lstrip().startswith("#"):
            joined += raw[:-1] + " "
            continue
        line = _COMMENT.sub("", joined + raw).strip()
        if line:
            yield first, line
        joined, first = "", 0
