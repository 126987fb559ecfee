"""Requirements that name a file, URL, git repository or folder, in pip's syntax.

https://pip.pypa.io/en/stable/cli/pip_install/ (what may stand in place of a name) and
https://pip.pypa.io/en/stable/topics/vcs-support/.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
    parse_wheel_filename,
)

from ..errors import RequestError
from .common import checked
from .projects import is_project, project_name

MOST_PATH = 4095
"""Linux, path_resolution(7)."""

_FILE = re.compile(r"\.(whl|tar\.gz|tgz|zip|tar\.bz2|tar\.xz)$")
_EXTRAS = re.compile(r"(?P<path>.+?)(?P<extras>\[[A-Za-z0-9._, -]*\])?")


def is_address(text: str) -> bool:
    """Whether a line names a place and not a package: it starts with one, or is a path."""
    bare = re.split(r"\s;|\s--", text)[0].rstrip()
    if "@" in bare and re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*(\s*\[[^\]]*\])?\s*@", bare):
        return False  # NAME @ ADDRESS
    return (
        bare.startswith((".", "/", "~", "file:"))
        or "://" in bare
        or _FILE.search(bare) is not None
        or ("/" in bare and re.fullmatch(r"[A-Za-z0-9._~/\[\],-]+", bare) is not None)
    )


def requirement_at(text: str, place: str, folder: Path) -> Requirement:
    """Return the requirement ``NAME @ ADDRESS`` of a line that names an address alone.

    A folder becomes a ``file:`` address. It is relative to ``folder``; where no project is there, to the
    working directory, as pip has it. Raises `RequestError`.
    """
    try:
        text = re.sub(r"\s{9,}", " ", text)
        address, _, marker = (part.strip() for part in re.sub(r"\s+;\s*|;\s+", " ; ", text).partition(" ; "))
        if address.startswith("file:"):
            path = urlsplit(address).path or address.removeprefix("file:")
            return _local(unquote(path), marker, place, folder)
        if "://" in address:
            return _remote(address, marker, place)
        return _local(address, marker, place, folder)
    except (ValueError, RuntimeError) as error:  # of urllib; of pathlib, for the home of nobody
        raise RequestError(f"{place}: {text[:200]!r} is not a valid address or path: {error}") from None


def _remote(address: str, marker: str, place: str) -> Requirement:
    parts = urlsplit(address)
    egg = parse_qs(parts.fragment).get("egg", [""])[0]
    form = re.fullmatch(r"([A-Za-z0-9][A-Za-z0-9._-]*)(\[[^\]]*\])?", egg)
    name, extras = (form[1], form[2] or "") if form is not None else ("", "")
    last = unquote(parts.path.rstrip("/").rpartition("/")[2])
    if not name and address.startswith("git+"):
        name = re.sub(r"(\.git)?(@.*)?$", "", last)
    if not name:
        name = _of_filename(last, address, place)
    address = re.sub(r"#.*", lambda match: _fragment(match[0]), address)
    return _built(f"{name}{extras} @ {address}", marker, place)


def _fragment(text: str) -> str:
    kept = [part for part in text[1:].split("&") if part and not part.startswith("egg=")]
    return "#" + "&".join(kept) if kept else ""


def _of_filename(name: str, address: str, place: str) -> str:
    try:
        return parse_wheel_filename(name)[0]
    except InvalidWheelFilename:
        pass
    try:
        return parse_sdist_filename(name)[0]
    except InvalidSdistFilename:
        raise RequestError(
            f"{place}: {address!r} does not name a package",
            hint=f"write NAME @ {address}",
        ) from None


def _local(text: str, marker: str, place: str, folder: Path) -> Requirement:
    form = _EXTRAS.fullmatch(text.rstrip("/") or text)
    assert form is not None
    if len(form["path"]) > MOST_PATH:
        raise RequestError(f"{place}: a path of more than {MOST_PATH:,} characters")
    path = folder / Path(form["path"]).expanduser()
    if not is_project(path) and is_project(Path(form["path"])):
        path = Path(form["path"])
    if _FILE.search(form["path"]):
        raise RequestError(
            f"{place}: {text!r} is a file of this machine, which a lock cannot name for others",
            hint=f"set up its folder (export UV_FIND_LINKS={path.parent}), and name the package",
        )
    name = project_name_at(path, place)
    return _built(f"{name}{form['extras'] or ''} @ file://{quote(str(path.resolve()))}", marker, place)


def project_name_at(path: Path, place: str) -> str:
    """Return the name of the project in a folder. Raises `RequestError` that begins with ``place``."""
    try:
        return project_name(path)
    except RequestError as error:
        raise RequestError(f"{place}: {error.message}", hint=error.hint) from None


def _built(text: str, marker: str, place: str) -> Requirement:
    try:
        return checked(Requirement(f"{text} ; {marker}" if marker else text), place)
    except InvalidRequirement as error:
        raise RequestError(f"{place}: {text!r}: {str(error).splitlines()[0]}") from None
