"""The address of a requirement: a wheel or a source archive by URL, a git repository, a folder. Pure.

The forms: https://packaging.python.org/en/latest/specifications/version-specifiers/#direct-references, and a
relative folder, as uv takes one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from .table import SHA256

Kind = Literal["wheel", "archive", "git", "folder"]

_ARCHIVES = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")
_SCHEMES = {"git+https": "https", "git+http": "http", "git+ssh": "ssh"}
_REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/+-]{0,255}")
_PATH = re.compile(r"[A-Za-z0-9._%+~/-]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Direct:
    """The target of a requirement's address. Create one with `parse`, which validates it."""

    kind: Kind
    url: str
    """Without what follows; of a folder its path, relative to the folder of the request, with ``/``."""
    ref: str = ""
    """Of a git repository: a branch, a tag or a commit; empty: its HEAD."""
    subdirectory: str = ""
    """Where the project is in it."""
    sha256: str | None = None
    """Of a file, where the address names it."""

    @classmethod
    def parse(cls, text: str) -> Direct:
        """Parse an address. Raises `ValueError` with the reason."""
        if not text.isprintable() or any(mark in text for mark in "\\ \"'`$<>"):
            raise ValueError("it has characters that an address cannot have")
        if text.startswith((".", "/")):
            return cls._folder(text)
        try:
            parts = urlsplit(text)
            host, login = parts.hostname, (parts.username, parts.password)
        except ValueError as error:
            raise ValueError(f"it is not an address: {error}") from None
        if parts.scheme not in ("https", "http", *_SCHEMES):
            raise ValueError("expected an address that starts with https:, http: or git+https:")
        if not host:
            raise ValueError("it has no host")
        if login[1] is not None or (login[0] is not None and parts.scheme != "git+ssh"):
            raise ValueError("it contains a user name or password, which everybody with the lock could read")
        if parts.query:
            raise ValueError("it has a query (the part after ?), which may hold a secret")
        fragment = _fragment(parts.fragment, "sha256", "subdirectory")
        if parts.scheme in _SCHEMES:
            return cls._git(parts, _inside(fragment.get("subdirectory", "")))
        return cls._file(parts, fragment)

    @classmethod
    def _git(cls, parts: SplitResult, subdirectory: str) -> Direct:
        path, at, ref = parts.path.rpartition("@")
        path = path if at else parts.path
        if at and (not _REF.fullmatch(ref) or ".." in ref):
            raise ValueError(f"{ref!r} is not a branch, tag or commit")
        _refuse_hidden(path)
        bare = urlunsplit((_SCHEMES[parts.scheme], parts.netloc, path, "", ""))
        return cls(kind="git", url=bare, ref=ref if at else "", subdirectory=subdirectory)

    @classmethod
    def _file(cls, parts: SplitResult, fragment: Mapping[str, str]) -> Direct:
        name = unquote(parts.path.rpartition("/")[2])
        sha256 = fragment["sha256"].lower() if "sha256" in fragment else None
        if sha256 is not None and not SHA256.fullmatch(sha256):
            raise ValueError("its sha256 is not 64 hex digits")
        bare = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
        if "/" in name or not name.isprintable():  # behind %
            raise ValueError("its last part is not the file name of a wheel or a source archive")
        if name.endswith(_ARCHIVES):
            under = _inside(fragment.get("subdirectory", ""))
            return cls(kind="archive", url=bare, subdirectory=under, sha256=sha256)
        try:
            parse_wheel_filename(name)
        except InvalidWheelFilename:
            raise ValueError("its last part is not the file name of a wheel or a source archive") from None
        return cls(kind="wheel", url=bare, sha256=sha256)

    @classmethod
    def _folder(cls, text: str) -> Direct:
        path, _, fragment = text.partition("#")
        if path.startswith("/"):
            raise ValueError("write a folder as a path relative to the request file, like ../libs/x")
        if not _PATH.fullmatch(path):
            raise ValueError("the path of a folder may contain only letters, digits and ._+~%/-")
        _refuse_hidden(path)
        under = _inside(_fragment(fragment, "subdirectory").get("subdirectory", ""))
        return cls(kind="folder", url=path.rstrip("/") or ".", subdirectory=under)

    def __str__(self) -> str:
        """Return it in its one spelling, which `parse` reads."""
        text = {"git": f"git+{self.url}", "folder": self.url}.get(self.kind, self.url)
        text += f"@{self.ref}" if self.ref else ""
        fragment = [("subdirectory", self.subdirectory), ("sha256", self.sha256)]
        return text + "".join(
            f"{'&' if index else '#'}{key}={value}"
            for index, (key, value) in enumerate((key, value) for key, value in fragment if value)
        )


def _fragment(text: str, *known: str) -> Mapping[str, str]:
    """Return what follows the ``#``; pip's old ``egg`` counts for nothing. Raises `ValueError`."""
    found = dict(parse_qsl(text, keep_blank_values=True))
    if strange := sorted(found.keys() - {*known, "egg"}):
        raise ValueError(f"#{strange[0]} is not supported: expected {' or '.join(known)}")
    return found


def _refuse_hidden(path: str) -> None:
    """Raise `ValueError` for a path that stands for more than printable text: a NUL, a line feed."""
    if not unquote(path).isprintable():
        raise ValueError(f"the path {path!r} has control characters behind %")


def _inside(path: str) -> str:
    """Return a path below a project. Raises `ValueError`."""
    cleaned = "/".join(part for part in path.split("/") if part not in ("", "."))
    if path.startswith("/") or ".." in cleaned.split("/") or (cleaned and not _PATH.fullmatch(cleaned)):
        raise ValueError(f"the subdirectory {path!r} is not a path below the project")
    return cleaned
