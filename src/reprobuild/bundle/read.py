"""Read a bundle once from start to end: verify every member, and store those that are needed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ..errors import FetchError, LockError
from ..fetch.base_layers import documents_of
from ..fetch.store import Store
from ..host.console import first_of, size_text
from ..host.home import open_regular, require_free, storage_errors, write_all
from ..host.host import Host
from ..lock.model import Lock
from ..lock.platforms import parse_locks
from ..oci.tar_fields import LayerRefused
from ..oci.tar_reader import Reader
from .contents import FIRST_LINE, LARGEST, LOCKS, MANIFEST, README, Manifest, Member, damaged

_LARGEST_TEXT = 64 << 20
"""Bytes of the README, the manifest, the script and a lock, which are read into memory."""

_POLL_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """The head of a bundle, which precedes its files."""

    file: Path
    manifest: Manifest
    locks: dict[str, tuple[Lock, ...]]
    """By the names of their files, one a platform."""


def read_head(file: Path) -> Head:
    """Read the manifest and the locks. Raises `FetchError` if it is not a bundle, or damaged."""
    with _opened(file) as stream:
        members = _Stream(stream, file)
        texts = {
            member.path: b"".join(content)
            for member, content in members.until(lambda path: path.startswith(f"{LOCKS}/"))
        }
        assert members.manifest is not None
    locks = {
        path.partition("/")[2]: parse_locks(_text(text, path, file), f"{file}: {path}")
        for path, text in texts.items()
        if path.startswith(f"{LOCKS}/")
    }
    if not locks:
        raise damaged(str(file), MANIFEST, "it names no lock")
    return Head(file=file, manifest=members.manifest, locks=locks)


def locks_named(head: Head, name: str | None) -> tuple[Lock, ...]:
    """Return the locks of a name, ``frames`` or ``pylock.frames.toml``; None: the only one.

    Raises `LockError` that lists what the bundle has.
    """
    names = {key.removeprefix("pylock.").removesuffix(".toml"): locks for key, locks in head.locks.items()}
    if name is None and len(names) == 1:
        return next(iter(names.values()))
    wanted = (name or "").removeprefix("pylock.").removesuffix(".toml")
    if wanted in names:
        return names[wanted]
    raise LockError(
        f"{head.file} has no lock {name!r}" if name else f"{head.file} has {len(names)} locks",
        hint=f"name one of {', '.join(sorted(names))}",
    )


def extract(head: Head, path: str, folder: Path) -> Path:
    """Write one of the first members into a folder; return its path. Raises `FetchError`, `StorageError`."""
    target = folder / path
    with _opened(head.file) as stream:
        for member, content in _Stream(stream, head.file).until(lambda _: False):
            if member.path == path:
                with storage_errors(folder):
                    target.write_bytes(b"".join(content))
                return target
            for _ in content:
                pass
    raise damaged(str(head.file), path, "it is not in it")


def take(head: Head, locks: Iterable[Lock], host: Host) -> None:
    """Read a whole bundle, and add the files of some locks to the store.

    Raises `FetchError` that names the first member which is damaged or missing, or what a lock names and the
    bundle lacks; `StorageError`.
    """
    store = Store(host.home)
    wanted = _wanted(head, locks, store)
    missing = {m.sha256: m.size for m in head.manifest.members if m.sha256 in wanted}
    missing = {sha256: size for sha256, size in missing.items() if not store.has(sha256, size)}
    require_free(store.root, sum(missing.values()))
    total = sum(member.size for member in head.manifest.members)
    host.console.step(f"reading {head.file}, {size_text(total)}")
    with _opened(head.file) as stream, host.console.progress("read", total) as advance:
        members = _Stream(stream, head.file)
        for member, content in members.until(lambda _: True):
            if member.sha256 in missing:
                _add(member, content, store)
                del missing[member.sha256]
            else:
                for _ in content:
                    pass
            advance(member.size)
        members.end()
    if missing:
        raise damaged(str(head.file), MANIFEST, "the bundle was replaced while it was read")


def _wanted(head: Head, locks: Iterable[Lock], store: Store) -> set[str]:
    there = {member.sha256 for member in head.manifest.members}
    wanted: set[str] = set()
    for lock in locks:
        lacking = [
            artifact.filename
            for artifact in lock.artifacts
            if artifact.sha256 not in there and not store.has(artifact.sha256, artifact.size)
        ]
        if lacking:
            raise FetchError(
                f"{head.file} lacks files of the lock {lock.request.name}: {first_of(lacking)}",
                hint="it was made from another lock: build from a lock in it, or create it again with "
                "`reprobuild bundle`",
            )
        wanted |= {artifact.sha256 for artifact in lock.artifacts}
        wanted |= set(() if lock.base is None else documents_of(lock.base))
    return wanted


def _add(member: Member, content: Iterator[bytes], store: Store) -> None:
    """Write a verified member into the store; nothing is left of one that is damaged."""
    while True:
        with store.partial(member.sha256) as partial:
            if partial is None:
                time.sleep(_POLL_SECONDS)  # another process has it under way
                continue
            partial.discard()
            try:
                with storage_errors(partial.path):
                    for chunk in content:
                        write_all(partial.file, chunk)
            except BaseException:
                partial.discard()
                raise
            store.add(member.sha256, partial.path)
            return


@contextmanager
def _opened(file: Path) -> Iterator[IO[bytes]]:
    try:
        with open_regular(file) as stream:
            yield stream
    except LayerRefused as refused:
        raise damaged(str(file), "the archive", str(refused)) from None
    except OSError as error:
        if error.filename not in (None, str(file)):
            raise
        raise FetchError(f"{file}: cannot be read: {error.strerror}", hint="name a bundle") from None


def _text(data: bytes, path: str, file: Path) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise damaged(str(file), path, "it is not UTF-8 text") from None


class _Stream:
    """Yield the members of a bundle in order, each verified against the manifest."""

    def __init__(self, stream: IO[bytes], file: Path) -> None:
        self._where = str(file)
        self._reader = Reader(stream, most=LARGEST)
        self._entries = iter(self._reader)
        self._left: list[Member] = []
        self.manifest: Manifest | None = None

    def until(self, wanted: Callable[[str], bool]) -> Iterator[tuple[Member, Iterator[bytes]]]:
        """Yield the members and their content, up to the first whose path is not wanted.

        README comes first whatever is wanted. The content of each is to be read to its end.
        """
        readme = self._head()
        assert self.manifest is not None
        first, *self._left = self.manifest.members
        if Member.of(README, readme) != first:
            raise self._damaged(README, "its bytes are not those of the manifest")
        yield first, iter([readme])
        while self._left and (wanted(self._left[0].path) or "/" not in self._left[0].path):
            member = self._left.pop(0)
            try:
                entry = next(self._entries, None)
            except LayerRefused as refused:
                raise self._damaged(member.name, f"{refused} ({member.path})") from None
            if entry is None:
                raise self._damaged(member.name, f"the archive ends before it ({member.path})")
            if entry.kind != "file" and entry.path == member.path:
                raise self._damaged(member.name, f"it is not a regular file ({member.path})")
            if entry.path != member.path:
                raise self._damaged(member.name, f"{entry.path!r} is in its place ({member.path})")
            if entry.size != member.size:
                raise self._damaged(member.name, f"it has {entry.size:,} bytes, not {member.size:,}")
            in_memory = "/" not in member.path or member.path.startswith(f"{LOCKS}/")
            if in_memory and member.size > _LARGEST_TEXT:
                raise self._damaged(member.name, f"it has more than {_LARGEST_TEXT:,} bytes")
            yield member, self._content(member)

    def end(self) -> None:
        """Raise `FetchError` where something follows the last member."""
        extra = next(self._entries, None)
        if extra is not None:
            raise self._damaged(extra.path, "the manifest does not name it")
        if self._reader.goes_on:
            raise self._damaged("the archive", "something follows the end of the archive")

    def _content(self, member: Member) -> Iterator[bytes]:
        digest = hashlib.sha256()
        try:
            for chunk in self._reader.content():
                digest.update(chunk)
                yield chunk
        except LayerRefused as refused:
            raise self._damaged(member.name, f"{refused} ({member.path})") from None
        if digest.hexdigest() != member.sha256:
            raise self._damaged(
                member.name, f"its SHA-256 is {digest.hexdigest()}, not {member.sha256} ({member.path})"
            )

    def _head(self) -> bytes:
        try:
            readme = self._document(README)
        except LayerRefused:
            readme = b""
        if not readme.startswith(FIRST_LINE.encode()):
            raise FetchError(
                f"{self._where} is not a bundle: expected an archive that starts with a README of one",
                hint="`reprobuild bundle LOCK -o FILE` writes one; an exported image is another archive",
            )
        try:
            manifest = self._document(MANIFEST)
        except LayerRefused as refused:
            raise self._damaged(MANIFEST, str(refused)) from None
        self.manifest = Manifest.parse(manifest, self._where)
        return readme

    def _document(self, path: str) -> bytes:
        entry = next(self._entries, None)
        if entry is None or entry.path != path or entry.kind != "file" or entry.size > _LARGEST_TEXT:
            raise LayerRefused(f"{path} is not where it belongs")
        return b"".join(self._reader.content())

    def _damaged(self, name: str, why: str) -> FetchError:
        return damaged(self._where, name, why)
