"""Conda packages as no honest tool makes them: any members, any paths.json."""

from __future__ import annotations

import bz2
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import zstandard

from reprobuild.lock.packages import CondaPackage

EMPTY = hashlib.sha256(b"").hexdigest()


def member(path: str, what: bytes | str = b"", kind: bytes | None = None) -> tuple[tarfile.TarInfo, bytes]:
    """Return a member: a file of some bytes, a symbolic link to a path, or of another ``kind``."""
    entry = tarfile.TarInfo(path)
    data = what if isinstance(what, bytes) else b""
    entry.type = kind or (tarfile.REGTYPE if isinstance(what, bytes) else tarfile.SYMTYPE)
    entry.linkname = what if isinstance(what, str) else ""
    entry.size = len(data)
    return entry, data


def listed(path: str, kind: str = "hardlink", **more: Any) -> dict[str, Any]:
    """Return an entry of paths.json."""
    return {"_path": path, "path_type": kind, "sha256": EMPTY, "size_in_bytes": 0, **more}


def tar_of(members: Sequence[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    """Return a tar of some members, in their order."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for entry, data in members:
            tar.addfile(entry, io.BytesIO(data) if data else None)
    return out.getvalue()


def conda_archive(
    members: Sequence[tuple[tarfile.TarInfo, bytes]],
    paths: Sequence[Mapping[str, Any]] | bytes,
    *,
    name: str = "evil",
    info: Mapping[str, bytes] | None = None,
    old: bool = False,
    **index: Any,
) -> bytes:
    """Return a package; ``old``: as .tar.bz2. ``index`` and ``info`` count for more than what is usual."""
    table = {"name": name, "version": "1.0", "build": "0", "build_number": 0, "depends": [], **index}
    listing = paths if isinstance(paths, bytes) else json.dumps({"paths": paths, "paths_version": 1}).encode()
    documents = {
        "info/index.json": json.dumps({"subdir": "linux-64", **table}).encode(),
        **({"info/paths.json": listing} if listing else {}),
        **(info or {}),
    }
    about = [member(path, data) for path, data in documents.items()]
    if old:
        return bz2.compress(tar_of([*about, *members]))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as outer:
        outer.writestr("metadata.json", b'{"conda_pkg_format_version": 2}')
        for part, entries in (("pkg", members), ("info", about)):
            outer.writestr(f"{part}-{name}-1.0-0.tar.zst", zstandard.compress(tar_of(entries)))
    return out.getvalue()


def conda_package(data: bytes, name: str = "evil", *, old: bool = False) -> CondaPackage:
    """Return the locked package of an archive."""
    ending = "tar.bz2" if old else "conda"
    return CondaPackage(
        name=name,
        version="1.0",
        build="0",
        subdir="linux-64",
        url=f"https://conda.example/forge/linux-64/{name}-1.0-0.{ending}",
        sha256=hashlib.sha256(data).hexdigest(),
        md5=None,
        size=len(data),
        depends=(),
    )
