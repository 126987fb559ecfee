"""Known vulnerabilities of locked Python packages, from a collection of advisories in OSV's format.

The format, and how a version is compared, is https://ossf.github.io/osv-schema/. Only advisories of the
ecosystem PyPI count: OSV knows Debian's packages by their source versions, which a lock does not have.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from ..errors import ResolveError
from ..fetch.http_errors import reason_of
from ..host.zip_directory import open_zip
from ..net.session import without_credentials
from ..net.transport import read_whole

_LARGEST_SOURCE = 1 << 30
_LARGEST_ENTRY = 16 << 20
_MOST_ENTRIES = 1_000_000
_EVENTS = ("introduced", "fixed", "last_affected", "limit")


@dataclass(frozen=True, kw_only=True, slots=True)
class Vulnerability:
    """An advisory that affects a locked package, or may affect it."""

    name: str
    version: str
    id: str
    aliases: tuple[str, ...]
    summary: str
    fixed: tuple[str, ...]
    """The versions that fix it, oldest first."""
    is_certain: bool
    """Whether the advisory's bounds are PEP 440 versions, comparable with the locked one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Advisories:
    """What a source has about some packages."""

    source: str
    sha256: str
    entries: int
    newest: str
    """The day of the last change to any entry; empty without entries."""
    found: tuple[Vulnerability, ...]


def find_vulnerabilities(
    source: str, versions: Iterable[tuple[str, str]], session: requests.Session
) -> Advisories:
    """Return the advisories about some packages, each a normalized name and a version.

    ``source`` is the file ``all.zip`` of the ecosystem PyPI, a folder of advisories, or the address of such a
    file. Raises `ResolveError` where it cannot be read, or an entry is not in OSV's format.
    """
    wanted: dict[str, set[str]] = {}
    for name, version in versions:
        wanted.setdefault(name, set()).add(version)
    found: list[Vulnerability] = []
    digest, count, newest = hashlib.sha256(), 0, ""
    with _entries(source, session) as (sha256, entries):
        for name, content in entries:
            digest.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode())
            count += 1
            where = f"{without_credentials(source)}: {name}"
            try:
                entry = json.loads(content)
                newest = max(newest, entry["modified"][:10])
                if entry.get("withdrawn") is None:
                    found += _of_entry(entry, wanted)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise ResolveError(
                    f"{where} is not an advisory in OSV's format: {error!r}",
                    hint="--osv takes all.zip of the ecosystem PyPI, or a folder of its entries",
                ) from None
    if not count:
        raise ResolveError(
            f"{without_credentials(source)} has no advisories",
            hint="--osv takes all.zip of the ecosystem PyPI, or a folder of its entries",
        )
    return Advisories(
        source=without_credentials(source),
        sha256=sha256 or digest.hexdigest(),
        entries=count,
        newest=newest,
        found=tuple(sorted(found, key=lambda v: (v.name, v.version, v.id))),
    )


def _of_entry(entry: Mapping[str, Any], wanted: Mapping[str, set[str]]) -> Iterator[Vulnerability]:
    affected: dict[str, list[Mapping[str, Any]]] = {}
    for each in entry.get("affected") or []:
        package = each.get("package") or {}
        if package.get("ecosystem", "").partition(":")[0] == "PyPI":
            affected.setdefault(canonicalize_name(package["name"]), []).append(each)
    for name in affected.keys() & wanted.keys():
        for version in sorted(wanted[name]):
            verdicts = [_affects(each, version) for each in affected[name]]
            if any(verdict is not False for verdict in verdicts):
                yield Vulnerability(
                    name=name,
                    version=version,
                    id=entry["id"].strip(),
                    aliases=tuple(sorted(map(str, entry.get("aliases") or []))),
                    summary=str(entry.get("summary") or ""),
                    fixed=_fixed(affected[name]),
                    is_certain=True in verdicts,
                )


def _affects(affected: Mapping[str, Any], version: str) -> bool | None:
    """Return whether a version is affected; None if the advisory's bounds are not comparable with it."""
    # A local label such as +cu121 names a build of the same release.
    mine = Version(Version(version).public)
    listed = affected.get("versions") or []
    if any(_version(text) == mine for text in listed):
        return True
    ranges = [each for each in affected.get("ranges") or [] if each["type"] != "GIT"]
    verdicts = [_in_range(each["events"], mine) for each in ranges]
    if True in verdicts:
        return True
    return None if None in verdicts or not (ranges or listed) else False


def _in_range(events: Iterable[Mapping[str, str]], mine: Version) -> bool | None:
    bounds: list[tuple[Version, str]] = []
    for event in events:
        for kind, text in event.items():
            if kind not in _EVENTS:
                raise ValueError(f"the event {kind!r} of a range")
            bound = Version("0.dev0") if text == "0" else _version(text)
            if kind == "limit" and text == "*":
                continue
            if bound is None:
                return None
            bounds.append((bound, kind))
    inside = False
    for bound, kind in sorted(bounds, key=lambda item: (item[0], item[1] != "introduced")):
        if kind == "introduced" and mine >= bound:
            inside = True
        elif (kind in ("fixed", "limit") and mine >= bound) or (kind == "last_affected" and mine > bound):
            inside = False
    return inside


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _fixed(affected: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    texts = {
        event["fixed"]
        for each in affected
        for bounds in each.get("ranges") or []
        if bounds["type"] != "GIT"
        for event in bounds["events"]
        if "fixed" in event
    }
    return tuple(sorted(texts, key=lambda text: (_version(text) or Version("0"), text)))


@contextmanager
def _entries(source: str, session: requests.Session) -> Iterator[tuple[str, Iterator[tuple[str, bytes]]]]:
    """Yield the SHA-256 of a file, empty for a folder, and its entries: name and content."""
    try:
        if source.startswith(("https://", "http://")):
            with session.get(source, stream=True) as answer:
                answer.raise_for_status()
                data = read_whole(answer, _LARGEST_SOURCE)
            yield hashlib.sha256(data).hexdigest(), _zipped(io.BytesIO(data))
        elif Path(source).is_dir():
            yield "", ((path.name, path.read_bytes()) for path in sorted(Path(source).glob("*.json")))
        else:
            with Path(source).open("rb") as file:
                yield hashlib.file_digest(file, "sha256").hexdigest(), _zipped(file)
    except (OSError, requests.RequestException, zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        raise ResolveError(
            f"the advisories {without_credentials(source)} cannot be read: {reason_of(error)}",
            hint="--osv takes all.zip of the ecosystem PyPI, a folder of its entries, or an address",
        ) from None


def _zipped(file: Any) -> Iterator[tuple[str, bytes]]:
    with open_zip(file) as archive:
        members = [member for member in archive.infolist() if member.filename.endswith(".json")]
        if len(members) > _MOST_ENTRIES:
            raise zipfile.BadZipFile(f"more than {_MOST_ENTRIES} entries")
        for member in sorted(members, key=lambda member: member.filename):
            with archive.open(member) as opened:
                content = opened.read(_LARGEST_ENTRY + 1)
            if len(content) > _LARGEST_ENTRY:
                raise zipfile.BadZipFile(f"{member.filename} has more than {_LARGEST_ENTRY} bytes")
            yield member.filename, content
