"""Differences between an image, derived or not, and the lock that it carries. Pure.

The lock is held against the digest in the labels, each file that the manifest names against its hash,
reprobuild's own against what this reprobuild puts into an image, variables against the lock, CUDA's libraries
against each other; what runs before a program does must be locked. The manifest is that of the image which
this one starts from, where it is known: a derived image can write what it likes into its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from packaging.utils import canonicalize_name

from ..errors import ImageError, LockError
from ..in_image.manifest import read as read_manifest
from ..in_image.selftest.names import CUDA_LIBRARY, FORBIDDEN
from ..lock.model import Lock
from ..lock.reader import parse_lock
from ..oci.archive_manifest import PLATFORM
from ..oci.documents import sha256
from ..oci.file_tree import ImageTree, capability
from ..oci.tar_writer import Kind, Record
from ..render.image_config import image_config
from ..render.labels import LABEL
from ..render.own_files import MANIFEST_FOLDERS, image_files, own_files, site_packages
from ..request.image_layout import OWN_FOLDER, SITE_PREFIX
from .commands import beside, commands
from .compare import Difference, settings
from .context import Context
from .entry_point import python_start
from .loader import libraries
from .shells import is_read_by_shells, shells, unknown
from .startup import is_read_at_start, startup, unknown_helpers, unknown_plugins
from .system_files import system_files
from .user_files import is_read_of_users, unknown_of_users, user_files

_HERE = OWN_FOLDER.lstrip("/")
_LOCK, _MANIFEST = f"{_HERE}/pylock.toml", f"{_HERE}/manifest.tsv"


def is_kept(path: str, size: int) -> bool:
    """Whether `check_tree` needs the content of a file; see `oci.merge_layers.Keep`."""
    if path in (_LOCK, _MANIFEST) or is_read_at_start(path):
        return True
    return is_read_by_shells(path) or is_read_of_users(path, size)


_OPEN = ("LANG", "LD_LIBRARY_PATH", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_VISIBLE_DEVICES", "PATH")
"""Variables of an image whose value a derived one may change: what they mean is judged elsewhere."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The differences between an image and its lock."""

    differences: list[Difference]
    """As (locked → found), by path."""
    added: list[str]
    """Files beside those of the manifest, below its folders. An image that starts from another is meant to
    have some: those that matter are among the differences."""
    beside: Mapping[str, str]
    """Settings that the lock does not have and that reach no user's program."""
    not_checked: list[str]
    """Paths and settings that cannot be compared with the lock."""
    python_start: tuple[str, ...]
    """The words by which the image's entry point starts Python; empty if it does not."""


def check_tree(tree: ImageTree, where: str, parent: bytes | None = None) -> Checked:
    """Compare an image with the lock in it; `is_kept` selects the files whose content is needed.

    ``parent`` is the manifest of the image that this one starts from; without it the image's own is believed.
    Raises `ImageError` when the image carries no lock of reprobuild's, or one that was edited.
    """
    lock = _lock(tree, where)
    if _MANIFEST not in tree.kept:
        raise ImageError(f"{where}: /{_MANIFEST} is missing, so its files cannot be checked")
    own = tree.kept[_MANIFEST]
    ours = _ours(lock, tree)
    named = {**_named(own if parent is None else parent, where), **ours}
    context = Context(named, tree, lock)
    differences = [
        *_rewritten(own, parent),
        *_changed(named, tree, lock),
        *_variables(tree, lock),
        *startup(context),
        *libraries(context),
        *commands(context),
        *system_files(context),
        *shells(context),
        *user_files(context),
        *_second_copies(named, tree),
        *_second_metadata(context),
        *_planted(ours, tree),
        *_privileged(named, tree, lock),
    ]
    roots = tuple(f"{folder}/".removeprefix("/") for folder in MANIFEST_FOLDERS)
    added = sorted(
        path
        for path, record in tree.files.items()
        if record.kind != "dir" and path.startswith(roots) and path not in named
    )
    unread = (*tree.untold, *(f"/{path}" for path in sorted(tree.unknown)))
    not_checked = [*unread, *unknown(context), *unknown_of_users(context)]
    not_checked += [*unknown_plugins(context), *unknown_helpers(context)]
    found = list(dict.fromkeys(differences))
    # "Volumes /opt/venv" is one of several.
    departing = {each.path for each in found} | {each.path.partition(" /")[0] for each in found}
    listed = {name: value for name, value in beside(context).items() if name not in departing}
    return Checked(found, added, listed, not_checked, python_start(context))


def _lock(tree: ImageTree, where: str) -> Lock:
    label = (tree.config.get("Labels") or {}).get(LABEL + "lock")
    if _LOCK not in tree.kept or label is None:
        what = f"/{_LOCK}" if label is not None else f"label {LABEL}lock"
        raise ImageError(
            f"{where} is not an image made by reprobuild: it has no {what}",
            hint="check an image that reprobuild made, or one that starts FROM it",
        )
    try:
        lock = parse_lock(tree.kept[_LOCK].decode("utf-8", "replace"), f"{where}: /{_LOCK}")
    except LockError as error:
        raise ImageError(error.message) from None
    if lock.digest != label:
        raise ImageError(f"{where}: /{_LOCK} is not the lock that the image's label names ({label})")
    return lock


def _rewritten(own: bytes, parent: bytes | None) -> Iterator[Difference]:
    if parent is not None and parent != own:
        yield Difference(f"/{_MANIFEST}", "content", sha256(parent)[7:], sha256(own)[7:])


def _named(manifest: bytes, where: str) -> Mapping[str, Record]:
    """Return the files that a manifest names, by path."""
    kinds: dict[str, Kind] = {"file": "file", "dir": "dir", "link": "link"}
    found = {}
    try:
        for kind, mode, content, path in read_manifest(manifest):
            found[path.lstrip("/")] = Record(path.lstrip("/"), kinds[kind], int(mode, 8), content)
    except (ValueError, KeyError) as error:
        raise ImageError(f"{where}: /{_MANIFEST} is damaged: {error}") from None
    return found


def _changed(named: Mapping[str, Record], tree: ImageTree, lock: Lock) -> Iterator[Difference]:
    # pip may replace itself (see image_files.constraints).
    site, prefix = site_packages(lock).lstrip("/"), SITE_PREFIX.lstrip("/")
    pip = re.compile(rf"{re.escape(site)}/pip(-[^/]+\.dist-info)?(/.*)?|{re.escape(prefix)}/bin/pip[\d.]*")
    for path, locked in sorted(named.items()):
        found = tree.files.get(path)
        if found is None and not pip.fullmatch(path):
            yield Difference(f"/{path}", "missing", locked.kind, "")
        elif found is not None and found.kind != locked.kind:
            yield Difference(f"/{path}", "type", locked.kind, found.kind)
        elif found is not None and found.content != locked.content and not pip.fullmatch(path):
            kind = "release" if _is_of_another_release(path, found.content, lock) else "content"
            yield Difference(f"/{path}", kind, locked.content, found.content)
        elif found is not None and found.mode != locked.mode and locked.kind == "file":
            yield Difference(f"/{path}", "mode", f"{locked.mode:o}", f"{found.mode:o}")


def _is_of_another_release(path: str, sha256: str, lock: Lock) -> bool:
    """Whether a file that is not this reprobuild's own is the one that the lock names.

    The lock is the image's word, as the file is: that makes it no better, it only tells what to do.
    """
    name = path.rpartition("/")[2]
    places = {f"{_HERE}/{name}", f"{site_packages(lock).lstrip('/')}/{name}"}
    known = None if lock.own_files is None else lock.own_files.sha256.get(name)
    return path in places and name in own_files().sha256 and sha256 == known


def _ours(lock: Lock, tree: ImageTree) -> Mapping[str, Record]:
    """Return reprobuild's own files, as this reprobuild puts them in.

    Those of the image are its own word, and so is what a manifest in it says of them.
    """
    files = {
        path.lstrip("/"): Record(path.lstrip("/"), "file", mode, sha256(content)[7:])
        for path, (content, mode) in image_files(lock).items()
    }
    # The lock's digest was held against the label; another release may write the same lock in other lines.
    found = tree.files[_LOCK].content if _LOCK in tree.files else ""
    return files | {_LOCK: replace(files[_LOCK], content=found)}


def _variables(tree: ImageTree, lock: Lock) -> Iterator[Difference]:
    found = {n[4:]: v for n, v in settings(tree.config).items() if n.startswith("Env ")}
    for name, value in image_config(lock).env.items():
        # One that is gone is no choice of a team's.
        is_open = name in _OPEN and (name in found or name == "PATH")
        if not is_open and found.get(name) != value:
            yield Difference(f"Env {name}", "setting", value, found.get(name, ""))
    for name in (*FORBIDDEN, "REPROBUILD_DETERMINISM"):
        if name in found:
            yield Difference(f"Env {name}", "setting", "", found[name])
    platform = str(tree.config.get(PLATFORM, ""))
    if platform != lock.platform:
        yield Difference(PLATFORM, "setting", lock.platform, platform)
    if f"{SITE_PREFIX}/bin" not in found.get("PATH", "").split(":"):
        yield Difference("Env PATH", "setting", f"{SITE_PREFIX}/bin:…", found.get("PATH", ""))


def _planted(ours: Mapping[str, Record], tree: ImageTree) -> Iterator[Difference]:
    """Files in reprobuild's own folder that it did not put there: a base's, or a derived image's."""
    for path, record in sorted(tree.files.items()):
        if path.startswith(f"{_HERE}/") and record.kind != "dir" and path not in {*ours, _MANIFEST}:
            yield Difference(f"/{path}", "added", "", f"/{path}")


def _privileged(named: Mapping[str, Record], tree: ImageTree, lock: Lock) -> Iterator[Difference]:
    """Locked files with capabilities, which no layer of reprobuild's own gives: the loader then ignores the
    variables that begin with LD_ (ld.so(8), "Secure-execution mode").
    """
    ours = (f"{SITE_PREFIX.lstrip('/')}/", f"{_HERE}/") if lock.base is not None else ("",)
    for path in sorted(named):
        found = tree.files.get(path)
        if found is not None and found.attributes and path.startswith(ours) and (has := capability(found)):
            yield Difference(f"/{path}", "attributes", "", has)


def _second_copies(named: Mapping[str, Record], tree: ImageTree) -> Iterator[Difference]:
    """Files that are a CUDA library, and that the tested image did not have."""
    first: dict[str, str] = {}
    for path in sorted(named):
        if match := CUDA_LIBRARY.fullmatch(path.rpartition("/")[2]):
            first.setdefault(match[1], f"/{path}")
    for path, record in sorted(tree.files.items()):
        match = CUDA_LIBRARY.fullmatch(path.rpartition("/")[2])
        if match and record.kind == "file" and path not in named:
            yield Difference(f"/{path}", "second copy", first.get(match[1], ""), f"/{path}")


def _second_metadata(context: Context) -> Iterator[Difference]:
    """Metadata of a locked package that the lock does not have: programs choose code by the version in it.

    importlib.metadata takes the first that the folder lists, in no order. pip may replace itself.
    """
    folder = re.escape(site_packages(context.lock).lstrip("/"))
    locked = {package.name for package in context.lock.python} - {"pip"}
    for path in context.added:
        found = re.fullmatch(rf"{folder}/([^/-]+)-[^/]*\.(dist-info/METADATA|egg-info(/PKG-INFO)?)", path)
        if found and canonicalize_name(found[1]) in locked:
            yield Difference(f"/{path}", "second copy", "", f"/{path}")
