"""Write a bundle of locks: a tar whose bytes depend only on its content."""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from .. import __version__, assets
from ..errors import LockError, StorageError
from ..fetch.base_layers import documents_of
from ..fetch.scheduler import fetch
from ..fetch.store import DAMAGED, Store
from ..host.console import size_text
from ..host.home import open_regular, replacing, require_free, write_all
from ..host.host import Host
from ..host.workers import workers
from ..lock.model import Lock
from ..lock.platforms import dump_locks
from ..oci.stream import CHUNK
from ..oci.tar_header import header
from ..oci.tar_writer import MTIME
from ..sources.direct_source import bring
from .contents import FILES, FORMAT, LOCKS, MANIFEST, README, Manifest, Member, in_order
from .tool import Tool, tool

_BLOCK = 512
_RECORD = 20 * _BLOCK
"""Record size of a tar, in bytes (POSIX.1-2008, pax)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """A written bundle."""

    sha256: str
    size: int
    """Bytes."""
    manifest: Manifest


def write_bundle(locks: Mapping[str, Sequence[Lock]], file: Path, host: Host) -> Written:
    """Fetch all that some locks name, by the names of their files, and write the bundle.

    The file is there as a whole or not at all. Raises `LockError` for two locks of one name, `FetchError`,
    `ResolveError`, `StorageError`.
    """
    if not file.parent.is_dir():
        raise StorageError(f"{file}: {file.parent} is not a folder", hint="make it, or name another place")
    with host.home.lock("build", host.console):  # `clean` would take files away
        members, texts, parts = _files(locks, host)
        parts_of_tool = tool(host)
        texts |= parts_of_tool.texts
        members = [*parts, *_without(members, parts_of_tool), *parts_of_tool.members]
        texts[README] = _readme(locks, parts_of_tool)
        members.append(Member.of(README, texts[README]))
        manifest = Manifest(version=__version__, members=in_order(members))
        size = sum(member.size for member in manifest.members)
        require_free(file, size, "free space there, or name another place")
        host.console.step(f"writing {file}, {size_text(size)}")
        with replacing(file) as out, host.console.progress("write", size) as advance:
            digest, written = _write(manifest, texts, Store(host.home), out, advance)
    return Written(sha256=digest, size=written, manifest=manifest)


def _files(
    locks: Mapping[str, Sequence[Lock]], host: Host
) -> tuple[list[Member], dict[str, bytes], list[Member]]:
    """Fetch the files of the locks; return them, the texts of the lock files, and those as members."""
    store = Store(host.home)
    members: list[Member] = []
    texts: dict[str, bytes] = {}
    for name, platforms in locks.items():
        texts[f"{LOCKS}/{name}"] = dump_locks(platforms).encode()
        for lock in platforms:
            bring(lock.python, host)
            fetch(lock, store, host.console)
            members += [_file(each.sha256, each.size, each.filename) for each in lock.artifacts]
            for sha256 in () if lock.base is None else documents_of(lock.base):
                if (path := store.path(sha256)).exists():
                    name_ = f"document {sha256[:12]} of {lock.base.image if lock.base else ''}"
                    members.append(_file(sha256, path.stat().st_size, name_))
    return members, texts, [Member.of(path, text) for path, text in texts.items()]


def _file(sha256: str, size: int, name: str) -> Member:
    return Member(path=f"{FILES}/{sha256}", sha256=sha256, size=size, name=name)


def _without(members: Sequence[Member], parts: Tool) -> list[Member]:
    """Leave out the files that install reprobuild, too: they are there already."""
    there = {member.sha256 for member in parts.members}
    return [member for member in members if member.sha256 not in there]


def _readme(locks: Mapping[str, Sequence[Lock]], parts: Tool) -> bytes:
    lines = [
        f"  {name.removeprefix('pylock.').removesuffix('.toml')}, for {lock.platform}: {lock.digest}"
        for name, platforms in sorted(locks.items())
        for lock in platforms
    ]
    text = assets.template("bundle-README.txt")
    for key, value in (
        ("FORMAT", str(FORMAT)),
        ("VERSION", __version__),
        ("LOCKS", "\n".join(lines)),
        ("MACHINE", os.uname().machine),
        ("NAME", " NAME" if len(locks) > 1 else ""),
        ("PYTHONS", " or ".join(parts.pythons)),
    ):
        text = text.replace(f"@{key}@", value)
    return text.encode()


def lock_names(sources: Sequence[str], locks: Sequence[Sequence[Lock]]) -> dict[str, Sequence[Lock]]:
    """Return locks by the names that their files have in a bundle, ``pylock.NAME.toml``.

    Raises `LockError` for two different ones of one name.
    """
    found: dict[str, Sequence[Lock]] = {}
    for source, platforms in zip(sources, locks, strict=True):
        name = f"pylock.{platforms[0].request.name}.toml"
        if found.setdefault(name, platforms) is not platforms and found[name] != platforms:
            raise LockError(
                f"{source} and another lock are both of a request {platforms[0].request.name!r}",
                hint="rename one of the requests, or make a bundle of each",
            )
    return found


def _write(
    manifest: Manifest,
    texts: Mapping[str, bytes],
    store: Store,
    out: IO[bytes],
    advance: Callable[[int], None],
) -> tuple[str, int]:
    """Write the tar; return its SHA-256 and size."""
    with workers(1, "hash") as pool:
        return _write_members(manifest, texts, store, _Output(out, pool), advance)


class _Output:
    """A file whose hash another thread makes, while this one reads and verifies what comes next."""

    def __init__(self, file: IO[bytes], pool: Executor) -> None:
        self._file, self._pool = file, pool
        self._content = hashlib.sha256()
        self._hashed: Future[None] | None = None
        self.size = 0

    def put(self, data: bytes | memoryview) -> None:
        """Write data. It is hashed once the next call returns, and must not change before."""
        self._wait()
        self._hashed = self._pool.submit(self._content.update, data)
        write_all(self._file, data)
        self.size += len(data)

    def digest(self) -> str:
        """Return the SHA-256 of all that was written."""
        self._wait()
        return self._content.hexdigest()

    def _wait(self) -> None:
        if self._hashed is not None:
            self._hashed.result()


def _write_members(
    manifest: Manifest,
    texts: Mapping[str, bytes],
    store: Store,
    out: _Output,
    advance: Callable[[int], None],
) -> tuple[str, int]:
    put = out.put

    def begin(path: str, size: int) -> None:
        put(header(path, tarfile.REGTYPE, 0o755 if path.endswith(".sh") else 0o644, MTIME, size=size))

    for member in manifest.members:
        begin(member.path, member.size)
        if (text := texts.get(member.path)) is not None:
            put(text)
        else:
            for chunk in stored(member, store):
                put(chunk)
        put(bytes(-member.size % _BLOCK))
        advance(member.size)
        if member.path == README:
            text = manifest.dump()
            begin(MANIFEST, len(text))
            put(text + bytes(-len(text) % _BLOCK))
    put(bytes(2 * _BLOCK))
    put(bytes(-out.size % _RECORD))
    return out.digest(), out.size


def stored(member: Member, store: Store) -> Iterator[memoryview]:
    """Yield the content of a file of the store; `StorageError` where it is damaged.

    A piece stays as it is until the next but one is asked for.
    """
    digest, size = hashlib.sha256(), 0
    buffer, other = (memoryview(bytearray(CHUNK)) for _ in range(2))
    with open_regular(store.path(member.sha256)) as file:
        while count := file.readinto(buffer):
            digest.update(buffer[:count])
            size += count
            yield buffer[:count]
            buffer, other = other, buffer
    if digest.hexdigest() != member.sha256 or size != member.size:
        store.remove(member.sha256)
        raise StorageError(f"{member.name}: its bytes in the store are damaged", hint=DAMAGED)
