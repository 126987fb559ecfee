"""The blobs of a home by digest, as the image-layout specification of OCI names their files.

Layers are put here before any image has them, by the layer cache; manifests and configurations by the image
store. The image store alone removes any, since it alone knows which ones an image needs.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

from ..errors import ImageError, StorageError
from ..host.home import Home, NamedFile, make_folders, put_off, storage_errors
from ..host.os_reasons import UNREADABLE
from ..host.verified import distrust, is_unchanged, stamp
from ..request.table import SHA256

_BUFFER = 1 << 17
_AGAIN = "`reprobuild image` with the lock of the image makes it again"


class Blobs:
    """The folder ``oci/blobs/sha256`` of a `Home`."""

    def __init__(self, home: Home) -> None:
        self.folder = home.folder("oci") / "blobs" / "sha256"
        make_folders(self.folder)

    def path(self, digest: str) -> Path:
        """Where the blob of a digest (``sha256:…``) is or will be."""
        return self.folder / digest.removeprefix("sha256:")

    def fault(self, digest: str) -> str | None:
        """Return a blob's fault as `fault_of` does, without hashing one that was verified."""
        return fault_of(self.path(digest), trust=True)

    def take(self, file: Path, digest: str) -> None:
        """Take over a finished temporary file on the same disk, whose bytes the caller has hashed."""
        with storage_errors(self.folder):
            file.chmod(0o444)
            file.replace(self.path(digest))
            file.unlink(missing_ok=True)  # two names of one file: then rename(2) does nothing
        stamp(self.path(digest), digest.removeprefix("sha256:"))

    def share(self, file: Path, digest: str) -> None:
        """Add a verified file by a hard link, or a copy where it cannot be linked."""
        temporary = self.folder / f".{digest.removeprefix('sha256:')}"
        with storage_errors(self.folder):
            temporary.unlink(missing_ok=True)
            try:
                temporary.hardlink_to(file)
            except OSError:
                shutil.copyfile(file, temporary)
        self.take(temporary, digest)

    def keep_only(self, digests: Collection[str], failures: list[StorageError]) -> int:
        """Remove all blobs except some; return the bytes freed. Only for `ImageStore.drop_blobs`.

        ``failures`` gets an error for each that cannot be removed.
        """
        freed = 0
        with storage_errors(self.folder):
            blobs = sorted(self.folder.iterdir())
        for blob in blobs:
            if f"sha256:{blob.name}" not in digests:
                with put_off(failures), storage_errors(blob):
                    size = blob.lstat().st_size
                    blob.unlink()
                    freed += size
        return freed


def fault_of(blob: Path, *, trust: bool = False) -> str | None:
    """Return a blob's fault; None if its bytes match its name. A damaged one is removed.

    With ``trust`` one is not hashed that was verified and not written to since (see host/verified.py).
    A file with another kind of name is left alone. One that the disk does not give stays, since that may
    pass, until it is made again. Raises `StorageError` for other errors of the disk.
    """
    if not SHA256.fullmatch(blob.name):
        return None
    with storage_errors(blob):
        try:
            if is_unchanged(blob, blob.name, trust=trust):
                return None
        except FileNotFoundError:
            return "it is missing"
        except OSError as error:
            if error.errno not in UNREADABLE:
                raise
            return f"the disk does not give it any more ({error.strerror})"
        blob.unlink(missing_ok=True)
    return "its bytes do not match its name, so it was removed"


def refuse_damaged(*blobs: Path) -> None:
    """Hash some blobs; raise `ImageError` for one that is missing or damaged, which is then removed."""
    for blob in blobs:
        if fault := fault_of(blob):
            raise damaged(f"sha256:{blob.name}", fault)


def damaged(digest: str, reason: str) -> ImageError:
    """Return the error for a blob that does not match its digest."""
    return ImageError(f"the image store is damaged: {digest}: {reason}", hint=_AGAIN)


def open_blob(blob: Path) -> BufferedReader:
    """Open a blob to read. A read that fails raises `StorageError` with the blob's name.

    The `OSError` of a read has no name, so it would be blamed on what is written meanwhile.
    """
    return BufferedReader(_BlobFile(blob, blob), _BUFFER)


class _BlobFile(NamedFile):
    def readinto(self, buffer: Any) -> int | None:
        with storage_errors(self.path), self._distrusted():
            return super().readinto(buffer)

    def readall(self) -> bytes:
        with storage_errors(self.path), self._distrusted():
            return super().readall()

    @contextmanager
    def _distrusted(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            distrust(self.path, error)
            raise
