"""The data folder of reprobuild, and locks by which its processes share it.

Every claim is a kernel lock on an open file (`flock`), so it ends with the process that holds it, however
that ends. Nothing here trusts a process number, which another container could use too.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader, FileIO
from pathlib import Path
from typing import IO, Any, Literal
from urllib.parse import quote

from ..errors import HostError, StorageError
from .console import Console, size_text
from .descriptors import FOLDER, closing_descriptor
from .ext4_spread import spread_below
from .os_reasons import FULL, SCARCE, UNREADABLE
from .removal import remove_tree

Folder = Literal[
    "store", "layers", "oci", "roots", "reports", "pushed", "built", "resolved", "tmp", "evidence", "locks"
]

_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)
_ELSE = (
    *(errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG),
    *(errno.EFBIG, errno.ESTALE, errno.EREMOTEIO, errno.ETIMEDOUT, errno.ENODEV, errno.ENXIO),
    errno.EBUSY,  # a mount point, which cannot be replaced or removed
    *(errno.ENOTCONN, errno.ENOKEY, errno.EINVAL, errno.EXDEV),
    *UNREADABLE,
)
_REMEDIES = {
    errno.EFBIG: "use another disk: FAT takes 4 GiB in a file, `ulimit -f` may allow less",
    errno.EXDEV: "keep all parts of reprobuild's home on one disk",
}
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
"""What flock(2) answers on a file system without locks, as Lustre mounted without ``flock``."""
_PRIVATE = 0o700
"""Of the home and its parts: others could run what is setuid in an image's files (CVE-2021-41091), and read
what a private index gave."""
_SCRATCH = 0o755
"""Of a folder for one use: programs in a user namespace have other ids, and must get through to their own."""
_SHARED = 0o644
"""Of a file that is claimed."""
_HOLDERS = {"build": "builds, tests or cleans up", "sources": "builds from source or cleans up"}
_LITTLE = 1 << 20
_BUFFER = 1 << 17


@dataclass(frozen=True, slots=True)
class Home:
    """The folder with the store, the layers and the images. Its parts are created on first use."""

    root: Path

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Home:
        """``REPROBUILD_HOME``, else ``XDG_DATA_HOME/reprobuild``, else ``~/.local/share/reprobuild``.

        Raises `HostError` where the user has no home directory, or its path is not UTF-8.
        """
        own, data = environ.get("REPROBUILD_HOME"), environ.get("XDG_DATA_HOME", "")
        try:
            # The XDG specification says to ignore a relative path.
            base = Path(data) if data.startswith("/") else Path("~/.local/share")
            root = Path(own).expanduser().absolute() if own else base.expanduser() / "reprobuild"
            str(root).encode()
        except RuntimeError as error:
            raise HostError(
                f"no home directory: {error}", hint="set REPROBUILD_HOME to an absolute path, or set HOME"
            ) from None
        except UnicodeEncodeError:  # the configuration of a container is JSON, which has no other bytes
            raise HostError(
                f"{root}: the path of reprobuild's home is not UTF-8",
                hint="set REPROBUILD_HOME to another folder",
            ) from None
        return cls(root)

    def folder(self, name: Folder) -> Path:
        """Return the path of a part of the home, made when it is not there yet. Raises `StorageError`."""
        path = self.root / name
        make_folders(self.root.parent)
        make_folders(path, mode=_PRIVATE)
        with storage_errors(path):
            status = path.stat()
            # Of an earlier version, or made by hand: what is in there is this user's alone.
            if status.st_mode & 0o077 and status.st_uid == os.geteuid():
                path.chmod(_PRIVATE)
        return path

    @contextmanager
    def lock(self, name: str, console: Console, *, shared: bool = False, does: str = "") -> Iterator[None]:
        """Hold the lock ``name`` during the block, or share it; report when that means waiting.

        ``does`` says what its holder does. Not re-entrant. Its file stays: else two could be in at once.
        """
        path = self.folder("locks") / quote(name, safe="")
        operation = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        file = open_claimed(path, operation | fcntl.LOCK_NB)
        if file is None:
            what = does or _HOLDERS.get(name, f"holds {name!r}")
            console.step(f"waiting for another reprobuild, which {what} in {self.root}")
            file = claim(path, operation)
        with file:
            yield

    @contextmanager
    def scratch(self, name: str) -> Iterator[Path]:
        """Yield an empty folder below ``tmp``, which is removed at the end, or by a later `sweep`.

        Whatever programs left in it, also in a user namespace, is removed with it.
        """
        self.sweep()
        parent = self.folder("tmp")
        spread_below(parent)
        claimed = None
        while claimed is None:
            with storage_errors(parent):
                path = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=parent))
                # Until it is claimed, another process's sweep may take it away; then a new one is made.
                with suppress(FileNotFoundError):
                    path.chmod(_SCRATCH)
                    claimed = _claim_folder(path)
        try:
            yield path
        finally:
            with suppress(OSError):
                remove_tree(path)
            os.close(claimed)

    def sweep(self, failures: list[StorageError] | None = None) -> int:
        """Remove leftovers of killed processes below ``tmp``; return the number of entries.

        ``failures`` gets an error for each that cannot be removed.
        """
        removed = 0
        parent = self.folder("tmp")
        with storage_errors(parent):
            entries = sorted(parent.iterdir())
        for entry in entries:
            with storage_errors(parent):
                claimed = _claim_folder(entry)
            if claimed is None:
                continue
            try:
                with storage_errors(entry):
                    remove_tree(entry)
            except (
                OSError,
                HostError,
                StorageError,
            ) as error:  # it stops no other command
                if failures is not None:
                    failures.append(_left(entry, error))
            os.close(claimed)
            removed += not entry.exists()
        return removed


def _left(entry: Path, error: OSError | HostError | StorageError) -> StorageError:
    if isinstance(error, StorageError):
        return error
    return StorageError(f"{entry}: cannot be removed: {error}", hint=f"remove {entry} by hand")


def make_folders(path: Path, *, mode: int = 0o755) -> None:
    """Make a folder and its parents, of one mode whatever the umask. Raises `StorageError`."""
    with storage_errors(path):
        missing = [p for p in (path, *path.parents) if not p.exists()]
        for folder in reversed(missing):
            try:
                folder.mkdir()
            except FileExistsError:
                continue  # another process made it meanwhile
            folder.chmod(mode)
        if not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))


def claim(path: Path, operation: int = fcntl.LOCK_EX) -> IO[bytes]:
    """Open a file for reading and writing under a lock, by default an exclusive one; create it if missing.

    Closing gives it up. The holder may rename or remove the file: whoever waited then gets a new one under
    that path. Raises `StorageError`.
    """
    while True:
        if (file := open_claimed(path, operation)) is not None:
            return file


def try_claim(path: Path) -> IO[bytes] | None:
    """Claim a file as `claim` does, or return None at once when another process or thread holds it."""
    return open_claimed(path, fcntl.LOCK_EX | fcntl.LOCK_NB)


def atomic_write(path: Path, data: bytes, *, mode: int = 0o644, sync: bool = True) -> None:
    """Write a file atomically and durably; its folder must exist.

    Without ``sync`` a machine that stops may leave it too short: for what can be made again and is verified
    when it is read, since a sync waits for all the gigabytes that were written before.

    Two writers at once take turns. Raises `StorageError`, and then what was there before is unchanged.
    """
    if not path.parent.is_dir():
        raise StorageError(f"{path}: {path.parent} is not a folder", hint="make it, or name another place")
    with storage_errors(path.parent):
        with replacing(path, sync=sync) as file:
            write_all(file, data)
            os.fchmod(file.fileno(), mode)
        if sync:
            _sync_folder(path.parent)


@contextmanager
def replacing(file: Path, *, sync: bool = True) -> Iterator[IO[bytes]]:
    """Open a new file that takes the place of ``file`` at the end of the block; two writers take turns.

    When the block fails, what was there before is unchanged. Raises `StorageError`.
    """
    # One fixed name, claimed, so that killed writers leave at most this one file and the next reuses it.
    partial = file.with_name(f".{file.name}.partial")
    with storage_errors(file.parent), claim(partial) as out:
        try:
            with storage_errors(file.parent):  # a full disk has room once the file is gone
                out.truncate()
                yield out
                if sync:
                    os.fsync(out.fileno())
                partial.replace(file)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def write_all(file: IO[bytes], data: bytes | memoryview) -> None:
    """Write all of it to an unbuffered file, which may take less than it is given."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Convert errors of the disk below ``path`` to `StorageError`; other errors pass.

    Raises `HostError` where this process or the machine is short of something else.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or (os.strerror(error.errno) if error.errno else "")
        # Of a rename, the file that could not be replaced, not its new content under another name.
        found = error.filename2 or error.filename
        named = os.fsdecode(found) if isinstance(found, str | bytes) else path
        if error.errno in FULL:
            hint = "`reprobuild clean` removes what no image needs; REPROBUILD_HOME names another place"
            room = room_text(path)
            if error.errno == errno.EDQUOT:
                room = f"{room} on the disk, but the quota is used up"
                hint = f"{hint}; or ask for a larger quota"
            raise StorageError(f"{path}: {reason} ({room})", hint=hint) from error
        if error.errno in _DENIED:
            raise StorageError(
                f"{named}: {reason}",
                hint=f"make {path} writable, or use another folder (REPROBUILD_HOME names reprobuild's)",
            ) from error
        if error.errno in NO_LOCKS:
            raise StorageError(
                f"{named}: {reason}: the file system has no locks (flock)",
                hint="mount it with locks (Lustre: the option flock), or set REPROBUILD_HOME to a local disk",
            ) from error
        if (remedy := SCARCE.get(error.errno or 0)) is not None:
            raise HostError(f"{named}: {reason}", hint=remedy) from error
        if error.errno in _ELSE:
            otherwise = f"check {path}, or use another folder (REPROBUILD_HOME names reprobuild's)"
            raise StorageError(f"{named}: {reason}", hint=_REMEDIES.get(error.errno, otherwise)) from error
        raise


@contextmanager
def put_off(failures: list[StorageError]) -> Iterator[None]:
    """Collect an error of the disk, so that one file does not keep others from their turn."""
    try:
        yield
    except StorageError as error:
        failures.append(error)


def kind_of(path: str | Path) -> Literal["file", "folder", "other"] | None:
    """Return the kind of file at a path, links followed; None: nothing, or not a valid path."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return None
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading. OSError for anything else, which could block forever.

    The error of a read has the path, too.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError:  # a NUL in it
        raise OSError(errno.EINVAL, "not the name of a file", str(path)) from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return BufferedReader(NamedFile(descriptor, path), _BUFFER)


class NamedFile(FileIO):
    """A file to read, whose read errors have its path; those of read(2) lack it."""

    def __init__(self, file: int | Path, path: Path) -> None:
        super().__init__(file)
        self.path = path

    def readinto(self, buffer: Any) -> int | None:
        """Read as `FileIO` does."""
        try:
            return super().readinto(buffer)
        except OSError as error:
            error.filename = str(self.path)
            raise

    def readall(self) -> bytes:
        """Read as `FileIO` does."""
        try:
            return super().readall()
        except OSError as error:
            error.filename = str(self.path)
            raise


def free_bytes(path: Path) -> int:
    """Return what an ordinary user may still write on the disk of ``path``, which need not exist yet."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return shutil.disk_usage(path).free


def require_free(
    path: Path,
    needed: int,
    hint: str = "`reprobuild clean` removes what no image needs; REPROBUILD_HOME names another place",
) -> int:
    """Return `free_bytes`. Raises `StorageError` if it is less than what is needed."""
    if (free := free_bytes(path)) < needed:
        raise StorageError(f"{path}: needs {size_text(needed)}, only {size_text(free)} free", hint=hint)
    return free


def free_text(path: Path) -> str:
    """Return `free_bytes` for a message; ``unknown`` if the disk does not report it."""
    with suppress(OSError):
        return size_text(free_bytes(path))
    return "unknown"


def room_text(path: Path) -> str:
    """Describe the free space of a full disk: it may lack inodes and have bytes left."""
    with suppress(OSError):
        found = os.statvfs(path if path.exists() else path.parent)
        if found.f_files and not found.f_favail:
            return f"it can hold no more files: all {found.f_files} inodes are used"
    return f"{free_text(path)} free"


def raise_if_full(said: str, folder: Path) -> None:
    """Raise `OSError` if a program failed because the disk is full, by its output or by the disk."""
    # tar's words differ with the moment, but what it wrote is still there; mmdebstrap tidies up, but tells.
    for number in FULL:
        if os.strerror(number) in said:
            raise OSError(number, os.strerror(number)) from None
    if free_bytes(folder) < _LITTLE:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None


def open_claimed(path: Path, operation: int, *, mode: int | None = _SHARED) -> IO[bytes] | None:
    """Open a file under a lock; return None where it was taken, or replaced meanwhile.

    A new file has this mode; None: the one that the umask gives. Raises `StorageError`.
    """
    with storage_errors(path.parent), ExitStack() as on_failure:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o666 if mode is None else mode)
        file = on_failure.enter_context(os.fdopen(descriptor, "r+b", buffering=0))
        try:
            fcntl.flock(descriptor, operation)
        except BlockingIOError:
            return None
        if not _same_file(descriptor, path):
            return None
        # btrfs refuses a change of mode once a quota is used up; `clean` must get its lock even then.
        if mode is not None and stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
            os.fchmod(descriptor, mode)
        on_failure.pop_all()
        return file


def _claim_folder(path: Path) -> int | None:
    """Return a descriptor that claims a folder; None if it is claimed or gone."""
    try:
        descriptor = os.open(path, FOLDER | os.O_NOFOLLOW)
    except OSError:
        return None
    with ExitStack() as on_failure:
        on_failure.callback(os.close, descriptor)
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _same_file(descriptor, path):
                on_failure.pop_all()
                return descriptor
    return None


def _same_file(descriptor: int, path: Path) -> bool:
    """Whether the path still names the open file: its last holder may have renamed or removed it."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _sync_folder(path: Path) -> None:
    with closing_descriptor(os.open(path, FOLDER)) as descriptor:
        os.fsync(descriptor)
