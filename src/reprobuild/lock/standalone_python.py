"""The Python of a lock that Debian's release does not have: a standalone build, named by its hash. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from ..request.table import Table

PREFIX = "/opt/python"
"""Its folder in an image."""

_VERSION = re.compile(r"3\.[0-9]{1,3}\.[0-9]{1,3}")
_MOST_BYTES = 1 << 30


@dataclass(frozen=True, kw_only=True, slots=True)
class StandalonePython:
    """An archive of python-build-standalone, or of its form: the folder ``python`` with all that it needs.

    https://github.com/astral-sh/python-build-standalone
    """

    version: str
    """``3.12.8``"""
    url: str
    """As uv names it, without a mirror of the user's."""
    sha256: str
    size: int
    """Bytes."""

    @property
    def filename(self) -> str:
        """The last part of the address."""
        return unquote(urlsplit(self.url).path).rpartition("/")[2]

    @property
    def minor(self) -> str:
        """``3.12``"""
        return ".".join(self.version.split(".")[:2])

    def to_dict(self) -> dict[str, Any]:
        """Return the table that `read` reads back."""
        return {"version": self.version, "url": self.url, "size": self.size, "sha256": self.sha256}

    @classmethod
    def read(cls, get: Table) -> StandalonePython:
        """Validate a table of a lock. Raises `TableError`."""
        get.only(("version", "url", "sha256", "size"))
        return cls(
            version=get.text("version", _VERSION.fullmatch, "one like 3.12.8"),
            url=get.text("url", _is_address, "the address of an archive, without a login"),
            sha256=get.sha256(),
            size=get.size(most=_MOST_BYTES),
        )


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        plain = parts.username is None and parts.password is None
    except ValueError:  # brackets that hold no IPv6 address
        return False
    name = unquote(parts.path).rpartition("/")[2]
    return (
        parts.scheme in ("https", "http")
        and plain
        and text.isprintable()
        and " " not in text
        and re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*\.tar\.gz", name) is not None
    )
