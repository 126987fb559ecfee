"""Lay a bundle out as a package index for pip and uv, and as a Debian archive for apt."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from ..errors import FetchError, StorageError
from ..fetch.deb_file import archive_entry
from ..fetch.store import Store
from ..host.console import size_text
from ..host.home import make_folders, require_free, storage_errors, write_all
from ..host.host import Host
from ..host.removal import remove_tree
from ..lock.model import Lock
from ..lock.packages import DebianPackage, PythonPackage
from .contents import Member
from .read import Head, take
from .write import stored

SIMPLE, PYTHON, DEBIAN = "simple", "python", "debian"
"""Folders of a mirror: pages of the index; the files that they link to; an archive for each release."""

_File = TypeVar("_File", Member, DebianPackage)


@dataclass(frozen=True, kw_only=True, slots=True)
class MirrorFiles:
    """What a mirror consists of."""

    python: Mapping[str, Mapping[str, Member]]
    """Wheels and source archives: by project, by file name."""
    debian: Mapping[str, Mapping[str, DebianPackage]]
    """By release, by file name."""
    left_out: tuple[str, ...]
    """Files of the locks without a place in it: conda packages, layers, source trees, a standalone Python."""

    @property
    def members(self) -> Iterable[Member]:
        """Each file that is laid out."""
        for project in self.python.values():
            yield from project.values()
        for suite, packages in self.debian.items():
            for file, package in packages.items():
                yield Member(
                    path=f"{DEBIAN}/{suite}/{file}", sha256=package.sha256, size=package.size, name=file
                )


def lay_out(head: Head, folder: Path, host: Host) -> MirrorFiles:
    """Read a bundle, and lay the packages of its locks out in a new folder.

    The folder is there as a whole or not at all. Raises `FetchError` for a damaged bundle, or one with two
    files of one name; `BuildError` for what is no Debian package; `StorageError`.
    """
    locks = [lock for platforms in head.locks.values() for lock in platforms]
    mirror = mirror_of(locks, str(head.file))
    _check_new(folder)
    store = Store(host.home)
    with host.home.lock("build", host.console):  # `clean` would take files away
        take(head, locks, host)
        _check_new(folder)  # another process may have had the lock
        size = sum(member.size for member in mirror.members)
        require_free(folder, size, "free space there, or name another place")
        host.console.step(f"writing {folder}, {size_text(size)}")
        partial = folder.absolute().with_name(f".{folder.absolute().name}.partial")
        with storage_errors(folder):
            if partial.exists():
                remove_tree(partial)
            try:
                with storage_errors(folder):  # a full disk has room once the folder is gone
                    _write(mirror, partial, store)
                    partial.replace(folder)
            except BaseException:
                if partial.exists():
                    remove_tree(partial)
                raise
    return mirror


def _check_new(folder: Path) -> None:
    with storage_errors(folder):
        if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
            raise StorageError(f"{folder} already exists", hint="name a new folder, or an empty one")
    if not folder.absolute().parent.is_dir():
        raise StorageError(
            f"{folder}: {folder.parent} is not a folder", hint="make it, or name another place"
        )


def mirror_of(locks: Iterable[Lock], where: str) -> MirrorFiles:
    """Return the mirror of some locks. Raises `FetchError` for two files of one name."""
    python: dict[str, dict[str, Member]] = {}
    debian: dict[str, dict[str, DebianPackage]] = {}
    left_out: set[str] = set()
    for lock in locks:
        for artifact in lock.artifacts:
            package, name = artifact.of, artifact.filename
            if isinstance(package, DebianPackage):
                _add(debian.setdefault(lock.suite, {}), name, package, where)
            elif isinstance(package, PythonPackage) and (
                package.source is None or package.source.kind == "sdist"
            ):
                path = f"{PYTHON}/{package.name}/{name}"
                member = Member(path=path, sha256=artifact.sha256, size=artifact.size, name=name)
                _add(python.setdefault(package.name, {}), name, member, where)
            else:
                left_out.add(name)
    return MirrorFiles(python=python, debian=debian, left_out=tuple(sorted(left_out)))


def _add(files: dict[str, _File], name: str, file: _File, where: str) -> None:
    if files.setdefault(name, file).sha256 != file.sha256:
        raise FetchError(
            f"{where} has two files {name} with different bytes, and an index can offer one of them",
            hint="make a bundle of each lock that names one",
        )


def _write(mirror: MirrorFiles, folder: Path, store: Store) -> None:
    for member in mirror.members:
        path = folder / member.path
        make_folders(path.parent)
        with path.open("xb") as out:
            for chunk in stored(member, store):
                write_all(out, chunk)
        path.chmod(0o644)
    for project, files in mirror.python.items():
        links = {f"../../{quote(file.path)}#sha256={file.sha256}": name for name, file in files.items()}
        _page(folder / SIMPLE / project, project, links)
    _page(folder / SIMPLE, "Simple index", {f"{project}/": project for project in mirror.python})
    for suite, packages in mirror.debian.items():
        entries = [archive_entry(package, store=store) for _, package in sorted(packages.items())]
        (folder / DEBIAN / suite / "Packages").write_text("\n".join(entries))


def _page(folder: Path, title: str, links: Mapping[str, str]) -> None:
    """Write a page of a package index (PEP 503)."""
    make_folders(folder)
    lines = [f'<a href="{html.escape(link)}">{html.escape(text)}</a><br>' for link, text in links.items()]
    head = '<!DOCTYPE html>\n<html><head><meta charset="utf-8">'
    head += f'<meta name="pypi:repository-version" content="1.0"><title>{html.escape(title)}</title></head>'
    (folder / "index.html").write_text("\n".join([head, "<body>", *sorted(lines), "</body></html>", ""]))
