"""Normalize a built wheel, so that it does not depend on its backend's archive format.

The rule: the same files with the same content, stored without compression, since two releases of zlib may
give other bytes; those of ``.dist-info`` last, RECORD the very last, each part sorted by name; the time stamp
1980-01-01 00:00:00, the mode 0755 for what its owner may execute and 0644 for all else; no entries of
folders, no comments and no extra fields; RECORD written anew, sorted, with the SHA-256 and size of each file.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path

from ..errors import BuildError
from ..fetch.wheel_zip import chunks, opened

_EPOCH = (1980, 1, 1, 0, 0, 0)
_SIGNATURES = ("RECORD.jws", "RECORD.p7s")
"""Signatures of a RECORD that was replaced."""


def normalise(raw: Path, name: str, target: Path) -> None:
    """Write the wheel ``raw``, which a stranger's program has made, to ``target`` in its one form.

    Raises `BuildError`, naming the package, for what is no wheel.
    """
    with opened(raw, name) as archive, raw.open("rb") as plain, zipfile.ZipFile(target, "w") as out:
        members = {info.filename: info for info in archive.infolist() if not info.is_dir()}
        folders = {path.split("/")[0] for path in members if path.split("/")[0].endswith(".dist-info")}
        if len(folders) != 1:
            raise BuildError(
                f"{name}: its build made a wheel with {len(folders)} .dist-info folders, not one"
            )
        info_dir = folders.pop()
        record_path = f"{info_dir}/RECORD"
        left_out = {record_path, *(f"{info_dir}/{each}" for each in _SIGNATURES)}
        rows = []
        for path in sorted(
            members.keys() - left_out, key=lambda path: (path.startswith(f"{info_dir}/"), path)
        ):
            member = members[path]
            mode = member.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                raise BuildError(f"{name}: its build made a wheel in which {path!a} is not a regular file")
            digest = hashlib.sha256()
            with out.open(_info(path, executable=bool(mode & 0o100)), "w", force_zip64=_large(member)) as to:
                for chunk in chunks(plain, member):
                    digest.update(chunk)
                    to.write(chunk)
            encoded = base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
            rows.append((path, f"sha256={encoded}", str(member.file_size)))
        table = io.StringIO(newline="")
        csv.writer(table, lineterminator="\n").writerows([*sorted(rows), (record_path, "", "")])
        out.writestr(_info(record_path, executable=False), table.getvalue().encode())


def content_of(wheel: Path, name: str) -> Mapping[str, str]:
    """Return path → sha256 of the files of a wheel."""
    with opened(wheel, name) as archive, wheel.open("rb") as plain:
        found = {}
        for info in archive.infolist():
            digest = hashlib.sha256()
            for chunk in chunks(plain, info):
                digest.update(chunk)
            found[info.filename] = digest.hexdigest()
        return found


def first_difference(one: Path, other: Path, name: str) -> str:
    """Name the file in which two wheels of a package differ, RECORD last; empty if they do not."""
    mine, theirs = content_of(one, name), content_of(other, name)
    for path in sorted(mine.keys() | theirs.keys(), key=lambda path: (path.endswith("/RECORD"), path)):
        if mine.get(path) == theirs.get(path):
            continue
        if path not in mine or path not in theirs:
            return f"{path} is in one of them alone"
        return f"{path} differs"
    return ""


def _large(member: zipfile.ZipInfo) -> bool:
    return member.file_size >= 1 << 31


def _info(path: str, *, executable: bool) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(path, date_time=_EPOCH)
    info.create_system = 3
    info.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
    info.compress_type = zipfile.ZIP_STORED
    return info
