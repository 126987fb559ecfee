"""Download sources that a request names by address into the store: git repositories, folders, archives.

What is locked of them: of git the commit, and the SHA-256 of its tree as an archive by the rule of `tree`; of
a folder that of what git tracks in it; of an archive its own.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import requests

from ..errors import FetchError, LockError, RequestError, ResolveError
from ..fetch.http_errors import reason_of
from ..fetch.store import Store
from ..host.home import storage_errors
from ..host.host import Host
from ..lock.model import Lock
from ..lock.packages import PythonPackage, SourceArchive
from ..net.session import session, without_credentials
from ..request.direct import Direct
from ..request.envs_folder import FOLDER, OUTSIDE
from . import git
from .source_tree import Tree, keep, pack

_LARGEST = 4 << 30
"""Bytes of an archive by URL."""


def locate(
    name: str, direct: Direct, before: SourceArchive | None, host: Host
) -> tuple[SourceArchive, Sequence[str]]:
    """Return the current source of an address, its archive in the store, and notes for the user.

    ``before`` is what an earlier lock has, whose commit stays if the address is the same. Raises
    `ResolveError`, `FetchError`, `BuildError`.
    """
    match direct.kind:
        case "git":
            return _git(name, direct, before, host)
        case "folder":
            tree = _folder_tree(direct.url, host)
            note = f"{name}: the image gets a wheel of {direct.url} as it is now, not an editable install"
            found = SourceArchive(
                kind="directory",
                filename=f"{name}.tar",
                url=direct.url,
                sha256=tree.sha256,
                size=tree.size,
                subdirectory=direct.subdirectory,
            )
            return found, () if before is not None else (note,)
        case "archive":
            return _archive(name, direct, before, host), ()
        case "wheel":
            raise ValueError(f"{direct} is not a source")


def _git(
    name: str, direct: Direct, before: SourceArchive | None, host: Host
) -> tuple[SourceArchive, Sequence[str]]:
    notes: Sequence[str] = ()
    same = before is not None and (before.url, before.ref) == (direct.url, direct.ref)
    if before is not None and same:
        commit = before.commit
    else:
        found = git.resolve_ref(direct.url, direct.ref)
        commit = found.commit
        if found.kind in ("branch", "HEAD"):
            what = f"the branch {direct.ref}" if found.kind == "branch" else "the default branch"
            note = f"{name}: {what} of {direct.url} is at {commit[:12]} now, which is locked; "
            notes = (f"{note}--upgrade {name} follows it",)
    tree = Tree(before.sha256, before.size) if before is not None and same else None
    if tree is None or not Store(host.home).has(tree.sha256, tree.size):
        tree = _git_tree(direct.url, commit, direct.ref, host)
    source = SourceArchive(
        kind="vcs",
        filename=f"{name}-{commit[:12]}.tar",
        url=direct.url,
        sha256=tree.sha256,
        size=tree.size,
        commit=commit,
        ref=direct.ref,
        subdirectory=direct.subdirectory,
    )
    return source, notes


def _git_tree(url: str, commit: str, ref: str, host: Host) -> Tree:
    host.console.step(f"fetching {commit[:12]} of {without_credentials(url)}")
    with host.home.scratch("git") as folder:
        entries = git.read_commit(url, commit, ref, folder)
    return keep(pack(entries, f"{without_credentials(url)}@{commit[:12]}"), Store(host.home))


def _folder_tree(path: str, host: Host) -> Tree:
    folder = named_folder(path)
    return keep(pack(git.tracked(folder), path), Store(host.home))


def named_folder(path: str) -> Path:
    """Return the folder that a request or lock names from the folder of requests.

    Raises `RequestError` for one that is not there, or outside the project: a lock may be a stranger's.
    """
    folder = (FOLDER / unquote(path)).resolve()
    top = Path.cwd().resolve()
    if not folder.is_relative_to(top) and os.environ.get(OUTSIDE) != "1":
        raise RequestError(
            f"{path}: is not a folder below {top}",
            hint=f"run reprobuild in the project's folder, or set {OUTSIDE}=1 if you trust this request with "
            "any folder",
        )
    if not folder.is_dir():
        raise RequestError(
            f"{path}: no such folder: {folder}", hint="run reprobuild in the folder that has envs/"
        )
    return folder


def _archive(name: str, direct: Direct, before: SourceArchive | None, host: Host) -> SourceArchive:
    store = Store(host.home)
    filename = unquote(direct.url.rpartition("/")[2])
    if before is not None and before.url == direct.url and store.has(before.sha256, before.size):
        return replace(before, requires=())
    host.console.step(f"fetching {without_credentials(direct.url)}")
    with host.home.scratch("archive") as folder, session() as http:
        file = folder / "file"
        digest, size = _download(direct.url, file, http)
        wanted = direct.sha256 or (before.sha256 if before is not None and before.url == direct.url else None)
        if wanted is not None and digest != wanted:
            raise ResolveError(
                f"{name}: {direct.url} gives other bytes than expected: SHA-256 {digest}, not {wanted}",
                hint=f"the file was replaced; if you trust the new one, `reprobuild lock --upgrade {name}`",
            )
        store.add(digest, file)
    return SourceArchive(
        kind="archive",
        filename=filename,
        url=direct.url,
        sha256=digest,
        size=size,
        subdirectory=direct.subdirectory,
    )


def _download(url: str, file: Path, http: requests.Session) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    try:
        with (
            http.get(url, stream=True, headers={"Accept-Encoding": "identity"}) as answer,
            file.open("wb") as out,
        ):
            answer.raise_for_status()
            for chunk in answer.iter_content(1 << 20):
                size += len(chunk)
                if size > _LARGEST:
                    raise ResolveError(f"{without_credentials(url)}: has more than {_LARGEST >> 30} GiB")
                digest.update(chunk)
                with storage_errors(file):
                    out.write(chunk)
    except requests.RequestException as error:
        raise ResolveError(
            f"{without_credentials(url)} cannot be reached: {reason_of(error)}",
            hint="check the address, the network and proxy, and its login in ~/.netrc",
        ) from None
    return digest.hexdigest(), size


def bring(packages: Iterable[PythonPackage], host: Host) -> None:
    """Create the missing archives of packages from git or a folder in the store.

    Raises `FetchError` where they are other files than were locked.
    """
    store = Store(host.home)
    for package in packages:
        source = package.source
        if source is None or source.kind not in ("vcs", "directory") or store.has(source.sha256, source.size):
            continue
        if source.kind == "vcs":
            tree = _git_tree(source.url, source.commit, source.ref, host)
            where = f"{source.url} at {source.commit[:12]}"
        else:
            tree = _folder_tree(source.url, host)
            where = source.url
        if tree.sha256 != source.sha256:
            raise FetchError(
                f"{package.name}: the files of {where} are not those that were locked",
                hint="the folder has changed since; `reprobuild lock` takes it as it is now"
                if source.kind == "directory"
                else f"the repository gives other submodules; `reprobuild lock --upgrade {package.name}`",
            )


def check_folders(lock: Lock, where: str) -> None:
    """Raise `LockError` that names the folders whose files have changed since they were locked."""
    changed = []
    for package in lock.python:
        source = package.source
        if source is not None and source.kind == "directory":
            folder = named_folder(source.url)
            data = pack(git.tracked(folder), source.url)
            if hashlib.sha256(data).hexdigest() != source.sha256:
                changed.append(f"{source.url} ({package.name})")
    if changed:
        raise LockError(
            f"{where}: changed since it was locked: {', '.join(changed)}",
            hint="run `reprobuild lock` to update it",
        )
