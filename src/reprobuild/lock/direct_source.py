"""A source that a request names by its address, as a lock has it: ``archive``, ``vcs`` or ``directory``.

The tables are those of PEP 751. It has no place for the hash and size of a tree of files as an archive: they
are in the package's ``tool.reprobuild.tree``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from ..request.direct import Direct
from .model import SourceArchive

ADDRESSED = ("archive", "vcs", "directory")
"""Keys of a package's table."""

_SHA256 = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_KNOWN: Mapping[str, Mapping[str, type]] = {
    "archive": {"url": str, "size": int, "hashes": dict, "subdirectory": str},
    "vcs": {"type": str, "url": str, "requested-revision": str, "commit-id": str, "subdirectory": str},
    "directory": {"path": str, "subdirectory": str},
}
_KINDS = {"archive": "archive", "vcs": "git", "directory": "folder"}


class BadSourceError(Exception):
    """The place in the package's table, and what is wrong there."""


def read_addressed(name: str, table: Any, tree: Any, kind: str) -> SourceArchive:
    """Read the table of a source, and what is known of its tree. Raises `BadSourceError`."""
    if not isinstance(table, dict):
        raise BadSourceError(f"{kind}: expected a table")
    for key, value in table.items():
        if key not in _KNOWN[kind]:
            raise BadSourceError(f"{kind}.{key}: unknown key")
        if type(value) is not _KNOWN[kind][key]:
            raise BadSourceError(f"{kind}.{key}: unexpected {value!r}")
    commit, ref = table.get("commit-id", ""), table.get("requested-revision", "")
    under = table.get("subdirectory", "")
    if kind == "vcs" and (table.get("type") != "git" or not _COMMIT.fullmatch(commit)):
        raise BadSourceError('vcs: expected type = "git" and the whole hash of a commit')
    text = str(table.get("path", table.get("url", "")))
    written = f"git+{text}" + (f"@{ref}" if ref else "") if kind == "vcs" else text
    try:
        direct = Direct.parse(written + (f"#subdirectory={under}" if under else ""))
    except ValueError as error:
        raise BadSourceError(f"{kind}: {error}") from None
    if direct.kind != _KINDS[kind] or (direct.url, direct.ref, direct.subdirectory) != (text, ref, under):
        raise BadSourceError(f"{kind}: {text!r} is not a {_KINDS[kind]}")
    sized, where = (table, kind) if kind == "archive" else (tree, "tool.reprobuild.tree")
    hashes = sized.get("hashes") if isinstance(sized, dict) else None
    sha256 = hashes.get("sha256") if isinstance(hashes, dict) and len(hashes) == 1 else None
    size = sized.get("size") if isinstance(sized, dict) else None
    if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256) or type(size) is not int or size <= 0:
        raise BadSourceError(f"{where}: expected a size and a SHA-256")
    if kind != "archive" and sized.keys() != {"size", "hashes"}:
        raise BadSourceError(f"{where}: unknown key")
    return SourceArchive(
        kind=kind,  # type: ignore[arg-type]
        filename=source_filename(name, direct, commit),
        url=direct.url,
        sha256=sha256,
        size=size,
        commit=commit,
        ref=ref,
        subdirectory=under,
    )


def source_filename(name: str, direct: Direct, commit: str) -> str:
    """Return what the archive of a source is called."""
    if direct.kind == "archive":
        return unquote(direct.url.rpartition("/")[2])
    return f"{name}-{commit[:12]}.tar" if direct.kind == "git" else f"{name}.tar"
