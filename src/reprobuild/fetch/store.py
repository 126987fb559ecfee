"""The store: verified artifacts, each a read-only file named by its SHA-256.

``store/sha256/ab/abcd…`` holds the finished ones. ``store/partial/abcd…`` holds what a download has so far,
also after its process was killed; it gets the final name only when all its bytes are there and verified.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ..errors import StorageError
from ..host.console import Console
from ..host.home import Home, atomic_write, make_folders, put_off, storage_errors, try_claim
from ..host.os_reasons import UNREADABLE
from ..host.verified import is_unchanged, stamp
from ..lock.model import Artifact
from ..request.table import SHA256

DAMAGED = "run the command again: what is damaged in the store is removed and fetched again"
"""What to do about an artifact whose bytes have changed."""


class Store:
    """The artifacts of a `Home`. Several processes may use it at once."""

    def __init__(self, home: Home, console: Console | None = None) -> None:
        """Damaged files are reported to ``console``."""
        self._home, self._console = home, console or Console()
        self.root = home.root / "store"

    def path(self, sha256: str) -> Path:
        """Where the artifact is or will be. ValueError when ``sha256`` is not 64 hex digits."""
        if not SHA256.fullmatch(sha256):
            raise ValueError(f"{sha256!r} is not a sha256")
        return self.root / "sha256" / sha256[:2] / sha256

    def has(self, sha256: str, size: int) -> bool:
        """Whether the artifact is there. A damaged file does not count: it is named and removed.

        It is hashed unless it was verified and not written to since (see host/verified.py). Raises
        `StorageError` where it cannot be read, which is no damage.
        """
        return self._is_there(sha256, size, trust=True)

    def drop_damaged(self, artifacts: Iterable[Artifact]) -> list[str]:
        """Hash some artifacts; remove those that are damaged, and return the names of their files."""
        there = [a for a in artifacts if self.path(a.sha256).exists()]
        return sorted({a.filename for a in there if not self._is_there(a.sha256, a.size, trust=False)})

    def _is_there(self, sha256: str, size: int, *, trust: bool) -> bool:
        path = self.path(sha256)
        with storage_errors(path):
            try:
                found = path.lstat()
                if not stat.S_ISREG(found.st_mode):
                    return False
                if found.st_size == size and is_unchanged(path, sha256, trust=trust):
                    return True
            except (FileNotFoundError, NotADirectoryError):
                return False
            except OSError as error:
                if error.errno not in UNREADABLE:
                    raise
                # It stays, since that may pass, until the fetched one takes its place.
                self._console.warn(f"{path}: {error.strerror}; it is fetched again")
                return False
            path.unlink(missing_ok=True)
        self._console.warn(f"{path}: its bytes do not match its name, so it was removed; it is fetched again")
        return False

    def add(self, sha256: str, file: Path) -> Path:
        """Take over a file, on the home's disk, whose bytes the caller has verified; return its final path.

        It may be there already: then the new one takes its place. Raises `StorageError`.
        """
        # No fsync, which would add the time to write gigabytes out: after a power cut `has` hashes it.
        final = self.path(sha256)
        make_folders(final.parent)
        with storage_errors(self.root):
            file.chmod(0o444)
            file.replace(final)
        stamp(final, sha256)
        return final

    def add_document(self, data: bytes) -> Path:
        """Write some bytes under their own hash; return their path. Raises `StorageError`."""
        final = self.path(hashlib.sha256(data).hexdigest())
        make_folders(final.parent)
        atomic_write(final, data, mode=0o444, sync=False)
        stamp(final, final.name)
        return final

    @contextmanager
    def partial(self, sha256: str) -> Iterator[Partial | None]:
        """Claim the unfinished download of an artifact; None while another process or thread has it.

        What is there at the end and was not added stays for the next one to go on with; an empty one goes.
        """
        folder = self._home.folder("store") / "partial"
        make_folders(folder)
        path = folder / self.path(sha256).name
        file = try_claim(path)
        if file is None:
            yield None
            return
        with file:
            partial = Partial(path, file)
            try:
                yield partial
            finally:
                if partial.size() == 0:
                    path.unlink(missing_ok=True)

    def partial_size(self, sha256: str) -> int:
        """Return the size of an unfinished download in bytes; 0 without one."""
        try:
            return (self.root / "partial" / self.path(sha256).name).stat().st_size
        except FileNotFoundError:
            return 0

    def remove(self, sha256: str) -> None:
        """Remove an artifact if it is there. Raises `StorageError`."""
        with storage_errors(self.root):
            self.path(sha256).unlink(missing_ok=True)

    def sizes(self) -> Mapping[str, int]:
        """Return the bytes of each artifact, by sha256."""
        found = {}
        with storage_errors(self.root):
            for path in sorted(self.root.glob("sha256/??/*")):
                if SHA256.fullmatch(path.name):
                    found[path.name] = path.lstat().st_size
        return found

    def remove_partials(self, failures: list[StorageError]) -> int:
        """Remove the unfinished downloads on which no process works; return their bytes.

        ``failures`` gets an error for each that cannot be removed.
        """
        freed = 0
        with storage_errors(self.root):
            partials = sorted(self.root.glob("partial/*"))
        for path in partials:
            with put_off(failures):
                file = try_claim(path)
                if file is not None:
                    with file, storage_errors(self.root):
                        freed += os.fstat(file.fileno()).st_size
                        path.unlink()
        return freed


class Partial:
    """An unfinished download that this thread has claimed: ``file`` is open for reading and writing."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path = path
        self.file = file

    def size(self) -> int:
        """Return how many bytes are there."""
        return os.fstat(self.file.fileno()).st_size

    def discard(self) -> None:
        """Drop its bytes."""
        with storage_errors(self.path):
            self.file.seek(0)
            self.file.truncate()
