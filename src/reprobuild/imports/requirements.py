"""requirements.txt → what it asks for. The format: https://pip.pypa.io/en/stable/reference/requirements-file-format/."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..errors import RequestError
from ..net.index_settings import find_links
from ..net.session import indexes, without_credentials
from .common import Imported, cuda_of_flavour, read_text, requirement_of

_COMMENT = re.compile(r"(?<!\S)#.*")
_HASH = re.compile(r"\s--hash[= ]([a-z0-9]+):([0-9a-fA-F]+)")
_FILES = ("-r", "--requirement", "-c", "--constraint")
_INDEXES = ("-i", "--index-url", "--pypi-url", "--extra-index-url", "-f", "--find-links", "--no-index")
_HARMLESS = (
    *("--require-hashes", "--prefer-binary", "--only-binary", "--no-binary", "--pre", "--use-feature"),
    *("--no-build-isolation", "--trusted-host"),
)
_OF_A_BUILD = re.compile(
    r"\s--(config-settings?|global-option|install-option|build-option)(=|\s+)(\"[^\"]*\"|'[^']*'|\S+)"
)
"""Options of one requirement that only the build of a source package heeds."""

_MOST_FILES = 200
"""That one file includes, each as often as it is included."""

_PYTORCH = re.compile(r"(?:[a-z0-9-]+\.)*pytorch\.org")


def read_requirements(file: Path) -> Imported:
    """Read a requirements file, and those that it names with ``-r`` and ``-c``.

    What a constraints file pins counts where the package is asked for. Raises `RequestError` that names
    file and line for what cannot be locked: URLs, folders, editable packages.
    """
    reader = _Reader()
    reader.read(file, constraint=False)
    asked = {canonicalize_name(r.name) for r in reader.requirements}
    found = [*reader.requirements, *(c for c in reader.constraints if canonicalize_name(c.name) in asked)]
    name = re.sub(r"^requirements[-_.]?", "", file.stem) or file.absolute().parent.name
    return Imported(
        origin=str(file),
        name=name,
        requirements=tuple(found),
        index="pytorch" if reader.pytorch else None,
        cuda=reader.cuda,
        hashes={package: frozenset(values) for package, values in sorted(reader.hashes.items())},
    )


class _Reader:
    def __init__(self) -> None:
        self.requirements: list[Requirement] = []
        self.constraints: list[Requirement] = []
        self.hashes: dict[str, set[str]] = {}
        self.pytorch = False
        self.cuda: str | None = None
        self._open: list[str] = []
        self._files = 0

    def read(self, file: Path, *, constraint: bool) -> None:
        text, real = read_text(file), os.path.realpath(file)
        if real in self._open:
            raise RequestError(f"{file}: includes itself with -r or -c")
        self._files += 1
        if self._files > _MOST_FILES:
            raise RequestError(f"{file}: more than {_MOST_FILES} files are included with -r and -c")
        self._open.append(real)
        for number, line in _lines(text):
            self._line(line, f"{file}:{number}", file.parent, constraint=constraint)
        self._open.pop()

    def _line(self, line: str, place: str, folder: Path, *, constraint: bool) -> None:
        if line.startswith("-"):
            self._option(line, place, folder, constraint=constraint)
            return
        hashes = _HASH.findall(line)
        text = _OF_A_BUILD.sub("", _HASH.sub("", line)).strip()
        if " --" in text:
            raise RequestError(f"{place}: the option {text.partition(' --')[2]!r} is not supported")
        if (
            text.startswith((".", "/"))
            or "://" in text.partition("@")[0]
            or text.endswith((".whl", ".tar.gz"))
        ):
            raise RequestError(
                f"{place}: {text!r} is a file or address; only packages of an index can be locked",
                hint="publish a wheel to your own index, and name the package",
            )
        requirement = requirement_of(text, place)
        good = {value.lower() for kind, value in hashes if kind == "sha256"}
        if hashes and not good:
            raise RequestError(f"{place}: {requirement.name}: no sha256 among its hashes", hint="add one")
        (self.constraints if constraint else self.requirements).append(requirement)
        if good:
            self.hashes.setdefault(canonicalize_name(requirement.name), set()).update(good)

    def _option(self, line: str, place: str, folder: Path, *, constraint: bool) -> None:
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise RequestError(f"{place}: {line!r}: {error}") from None
        option, equals, value = words[0].partition("=")
        if not equals:
            value = words[1] if len(words) > 1 else ""
        if option in _FILES and value:
            if "://" in value:
                raise RequestError(f"{place}: {value} is not a local file", hint="download it")
            self.read(folder / value, constraint=constraint or option in _FILES[2:])
        elif option in _INDEXES:
            self._index(option, value, place)
        elif option in ("-e", "--editable"):
            raise RequestError(
                f"{place}: {line}: an editable package cannot be locked",
                hint="publish a wheel to your own index, or add the package in an image built FROM this one",
            )
        elif option not in _HARMLESS:
            raise RequestError(f"{place}: the option {option} is not supported", hint="remove the line")

    def _index(self, option: str, value: str, place: str) -> None:
        """Take PyTorch's own index as the request's key; another is the user's to set up."""
        try:
            parts = urlsplit(value)
        except ValueError:  # brackets that hold no IPv6 address
            raise RequestError(f"{place}: {option}: {value!r} is not an address") from None
        if _PYTORCH.fullmatch(parts.hostname or ""):
            self.pytorch = True
            named = re.search(r"/(cpu|cu[0-9]{2,})(/|$)", parts.path)
            self.cuda = self.cuda or (cuda_of_flavour(named[1]) if named else None)
        elif without_credentials(value).rstrip("/") not in _set_up():
            variable = {
                "-f": "UV_FIND_LINKS",
                "--find-links": "UV_FIND_LINKS",
                "--extra-index-url": "UV_INDEX",
            }
            setting = f"{variable.get(option, 'UV_DEFAULT_INDEX')}={shlex.quote(without_credentials(value))}"
            raise RequestError(
                f"{place}: {option}: the index is a setting of the machine, and this one is not set up",
                hint="remove the line"
                + (f", or set it up, if you trust it: export {setting}" if value else "")
                + "; for PyTorch's own give --index pytorch",
            )


def _set_up() -> set[str]:
    """Return the addresses of the user's indexes and find-links."""
    return {without_credentials(url).rstrip("/") for url in (*indexes().all, *find_links())}


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Give the lines with their numbers: those that end in a backslash joined, comments taken out."""
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
