"""The contents of a bundle: the list of its members, and their order in the tar.

README, manifest.json, install.sh and the locks come first, so that they can be read without the rest; then
what installs reprobuild, and the files of the locks by hash.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import FetchError
from ..request.json_reader import load_json
from ..request.table import SHA256

FORMAT = 1
"""The number changes when an older reprobuild would read a bundle wrongly."""

README, MANIFEST, INSTALL = "README", "manifest.json", "install.sh"
LOCKS, TOOL, DEBIAN, FILES = "locks", "reprobuild", "debian", "files"
"""The folders: lock files; wheels of reprobuild and its dependencies; Debian packages of the programs that it
starts, by release; the files of the locks."""

FIRST_LINE = "reprobuild bundle"
"""What the README starts with."""

LARGEST = 1 << 40
"""Bytes of a member."""

_PATH = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+~%!-]*(/[A-Za-z0-9][A-Za-z0-9_.+~%!-]*){0,2}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """A file of the bundle."""

    path: str
    sha256: str
    size: int
    """Bytes."""
    name: str
    """Its name in messages: the file name in the lock."""

    @classmethod
    def of(cls, path: str, content: bytes) -> Member:
        """Return the member with this content."""
        digest = hashlib.sha256(content).hexdigest()
        return cls(path=path, sha256=digest, size=len(content), name=path.rpartition("/")[2])


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """The file ``manifest.json``: every other member, in the order of the tar."""

    version: str
    """Of the reprobuild in the bundle."""
    members: tuple[Member, ...]

    @property
    def locks(self) -> tuple[Member, ...]:
        """The lock files."""
        return tuple(member for member in self.members if member.path.startswith(f"{LOCKS}/"))

    def dump(self) -> bytes:
        """Return the canonical text."""
        members = [{"path": m.path, "sha256": m.sha256, "size": m.size, "name": m.name} for m in self.members]
        table = {"format": FORMAT, "reprobuild": self.version, "members": members}
        return json.dumps(table, indent=1, ensure_ascii=False).encode() + b"\n"

    @classmethod
    def parse(cls, data: bytes, where: str) -> Manifest:
        """Read the text. Raises `FetchError` for another format, or if it is not a manifest."""
        try:
            table = load_json(data)
            found, version = table["format"], str(table["reprobuild"])
            if type(found) is not int:
                raise TypeError("format is not a number")  # noqa: TRY301 -- all that is wrong ends below
            if found != FORMAT:
                raise FetchError(
                    f"{where} is a bundle of format {found}, and this reprobuild reads format {FORMAT}",
                    hint=f"install the reprobuild in it, {version[:40]}, as its README says: head {where}",
                )
            members = tuple(_member(each) for each in table["members"])
            _check_paths(members)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise damaged(where, MANIFEST, f"it is not a manifest: {error}") from None
        return cls(version=version, members=members)


def damaged(where: str, name: str, why: str) -> FetchError:
    """Return the error for a member that differs from the bundle's manifest."""
    return FetchError(
        f"{where}: {name}: {why}",
        hint="copy the bundle again from where it was made, and compare the SHA-256 of the two files",
    )


def in_order(members: Iterable[Member]) -> tuple[Member, ...]:
    """Sort members by their order in the tar, each path once."""
    by_path = {member.path: member for member in members}
    return tuple(sorted(by_path.values(), key=_rank))


def _rank(member: Member) -> tuple[int, str]:
    folder, slash, _ = member.path.partition("/")
    parts = (LOCKS, TOOL, DEBIAN, FILES)
    return (parts.index(folder) + 1, member.path) if slash else (0, "" if folder == README else folder)


def _member(table: Mapping[str, Any]) -> Member:
    path, sha256, size, name = (table[key] for key in ("path", "sha256", "size", "name"))
    folder, slash, _ = str(path).partition("/")
    known = folder in (LOCKS, TOOL, DEBIAN, FILES) if slash else folder in (README, INSTALL)
    if not isinstance(path, str) or not _PATH.fullmatch(path) or not known:
        raise ValueError(f"{str(path)[:80]!r} is not the path of a member")
    if not isinstance(sha256, str) or not SHA256.fullmatch(sha256):
        raise ValueError(f"{path} has no SHA-256")
    if type(size) is not int or not 0 <= size <= LARGEST:
        raise ValueError(f"{path} has no size")
    return Member(path=path, sha256=sha256, size=size, name=str(name)[:255])


def _check_paths(members: tuple[Member, ...]) -> None:
    if members != in_order(members) or not members or members[0].path != README:
        raise ValueError("its members are not in order")
