"""reprobuild's own files in an image, as locked: version and hashes. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..request.table import SHA256, Table

NAME = "reprobuild"
"""The pin that ``lock --upgrade`` moves."""

_VERSION = re.compile(r"[0-9][0-9A-Za-z.+!-]{0,63}")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_MOST = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnFiles:
    """The files that a release of reprobuild adds to every image, whatever is locked.

    What follows from the rest of the lock is not among them: the lock itself, the constraints, the manifest.
    """

    version: str
    """Of reprobuild."""
    sha256: Mapping[str, str]
    """By the file's name, of which each occurs once in an image."""

    def __post_init__(self) -> None:
        """Sort the files into canonical order."""
        object.__setattr__(self, "sha256", dict(sorted(self.sha256.items())))

    @property
    def digest(self) -> str:
        """``sha256:…`` over the lines that ``sha256sum`` would print for the files."""
        lines = "".join(f"{sha256}  {name}\n" for name, sha256 in self.sha256.items())
        return "sha256:" + hashlib.sha256(lines.encode()).hexdigest()

    def __str__(self) -> str:
        """Return what a person tells two apart by."""
        return f"{self.version} {self.digest[7:19]}"

    def to_dict(self) -> dict[str, Any]:
        """Return the lock's table of it."""
        return {"version": self.version, "sha256": dict(self.sha256)}

    @classmethod
    def read(cls, table: Table) -> OwnFiles:
        """Read it from the lock's table. Raises `TableError`."""
        table.only(("version", "sha256"))
        version = table.text("version", _VERSION.fullmatch, "a version of reprobuild")
        files = table.table("sha256")
        if not 0 < len(files.data) <= _MOST:
            raise table.bad("sha256", f"expected a table of 1 to {_MOST} files")
        for name, sha256 in files.data.items():
            if not _FILE.fullmatch(name) or not isinstance(sha256, str) or not SHA256.fullmatch(sha256):
                raise files.bad(name, "expected a file name and 64 lower-case hex digits")
        return cls(version=version, sha256=files.data)
