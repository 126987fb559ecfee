"""Unpack layers into folders for overlayfs, each once and shared by all images."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import signal
import stat
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ..errors import ImageError, StorageError
from ..host.descriptors import FOLDER, closing_descriptor
from ..host.home import Home, atomic_write, put_off, storage_errors
from ..host.host import Host
from ..host.os_reasons import UNREADABLE
from ..host.removal import remove_tree
from ..host.untrusted_files import size_below
from ..host.verified import read_kept
from ..oci.blobs import damaged, fault_of, open_blob
from ..oci.file_tree import layer_of
from ..oci.tar_fields import LayerRefused
from ..oci.tar_reader import Reader
from .unpack import unpack_entries

MOST_BYTES = 30 * 10**9
"""Of unpacked layers together: about three CUDA images. `keep_within` removes those used longest ago."""

_MOST_NOTE = 1024
_FORM, _LOST, _CHANGED = "2", "lost", "changed"
"""What is before the hash of `_state` in a note; in that of a folder with files that the disk lost, or whose
content was found to be another."""
_EARLIER = "were unpacked by an earlier version"

_TO_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ_AGAIN, _MOST_READING, _MOST_SEARCHING = 3600.0, 5.0, 3600.0
"""Seconds: how often `drop_unreadable` reads a layer; how long at most, and where a page was lost."""

_LOST_PAGE = (-signal.SIGBUS, 128 + signal.SIGBUS)
"""How a program ends that the disk does not give a page of a mapped file."""

OPAQUE = ("trusted" if os.geteuid() == 0 else "user") + ".overlay.opaque"
"""The mark of a folder that hides what is below; an ordinary user's mounts have another (see sandbox.py)."""


def unpack(host: Host, blob: Path, diff_id: str, advance: Callable[[int], None]) -> Path:
    """Return the folder of a layer, unpacked and verified against ``diff_id`` when it is not there as it was.

    As an ordinary user all files belong to that user, who is root in the sandbox. ``advance`` gets the
    blob's bytes as they are read. Raises `ImageError` when the blob is damaged.
    """
    name = diff_id.removeprefix("sha256:")
    final = host.home.folder("roots") / name
    if _fault(final) is None:
        return final
    with (
        host.home.lock(f"root-{name[:16]}", host.console, does="unpacks a layer"),
        host.home.scratch("root") as scratch,
    ):
        if _fault(final) is None:
            return final
        _drop_damaged(host, final)
        root = scratch / "root"
        with storage_errors(root):
            root.mkdir()
            root.chmod(0o755)  # whatever the umask
            found = _extract(blob, root, advance)
            if found != diff_id:
                raise _damaged(blob, "its bytes are not those of the image")
            _keep(root, final, size_below(root))
    return final


def take_over(host: Host, root: Path, diff_id: str, size: int) -> None:
    """Take a folder with the files of a layer, on the home's disk, as what `unpack` would make of it.

    ``size`` is that of its files, in bytes. Raises `StorageError`.
    """
    name = diff_id.removeprefix("sha256:")
    final = host.home.folder("roots") / name
    with host.home.lock(f"root-{name[:16]}", host.console, does="unpacks a layer"), storage_errors(root):
        if _fault(final) is not None:
            _drop_damaged(host, final)
            _keep(root, final, size)


@contextmanager
def in_use(folders: Sequence[Path]) -> Iterator[None]:
    """Lock some layers' folders against `remove_unused` of other processes."""
    with ExitStack() as stack:
        for folder in folders:
            with suppress(OSError):
                os.utime(_size_file(folder))  # when it was used last
            try:
                with storage_errors(folder):
                    descriptor = stack.enter_context(closing_descriptor(os.open(folder, FOLDER)))
                    fcntl.flock(descriptor, fcntl.LOCK_SH)
                    there = os.path.samestat(os.fstat(descriptor), folder.stat())
            except StorageError as error:
                if not isinstance(error.__cause__, FileNotFoundError):
                    raise
                there = False
            if not there:
                raise ImageError(
                    f"{folder}: an unpacked layer was removed by another process",
                    hint="run the command again",
                )
        yield


def drop_unreadable(host: Host, folders: Sequence[Path], status: int | None) -> None:
    """Read some layers' files after a run that failed: a program does not say what the disk kept from it.

    What the disk does not give is reported, and the next run unpacks that layer again. Each layer is read at
    most once an hour, for a few seconds, unless ``status`` says that a page was lost.
    """
    is_lost = status in _LOST_PAGE
    end = time.monotonic() + (_MOST_SEARCHING if is_lost else _MOST_READING)
    for folder in folders:
        # The next run finds by itself that a note cannot be read; the run's own error is told.
        with suppress(StorageError, OSError, ValueError, IndexError):
            note = read_kept(_size_file(folder), _MOST_NOTE).decode("ascii").split()
            if not is_lost and 0 <= time.time() - float((*note, "0")[2]) < _READ_AGAIN:
                continue
            fault = _read_all(folder, end)
            if fault is not None:
                reason = os.strerror(fault.errno or 0)
                host.console.warn(f"{fault.filename}: {reason}: the next run unpacks this layer again")
                atomic_write(_size_file(folder), f"{note[0]} {_LOST}:".encode(), sync=False)
            elif time.monotonic() < end:
                text = f"{note[0]} {note[1]} {int(time.time())}"
                atomic_write(_size_file(folder), text.encode(), sync=False)


def distrust(folder: Path) -> None:
    """Note that a layer's files are not those of its image: the next `unpack` makes it anew."""
    with storage_errors(folder):
        atomic_write(_size_file(folder), f"{_known_size(folder)} {_CHANGED}:".encode(), sync=False)


def _read_all(folder: Path, end: float) -> OSError | None:
    """Read all files of a folder, until some time; return the error for the first that the disk lost."""
    faults: list[OSError] = []
    buffer = bytearray(1 << 20)

    def refused(error: OSError) -> None:
        if error.errno in UNREADABLE:
            faults.append(error)

    for top, _, files in os.walk(folder, onerror=refused):
        for name in files:
            path = f"{top}/{name}"
            try:
                with closing_descriptor(os.open(path, _TO_READ)) as descriptor:
                    while stat.S_ISREG(os.fstat(descriptor).st_mode) and os.readv(descriptor, [buffer]):
                        pass
            except OSError as error:
                error.filename = path  # read(2) does not say it
                refused(error)
            if faults or time.monotonic() >= end:
                return faults[0] if faults else None
    return faults[0] if faults else None


def remove_unused(home: Home, wanted: Collection[str], failures: list[StorageError]) -> int:
    """Remove the folders of layers that are neither ``wanted``, by digest, nor in use; return their bytes.

    ``failures`` gets an error for each that cannot be removed.
    """
    freed = 0
    for folder in _folders(home):
        if f"sha256:{folder.name}" not in wanted:
            with put_off(failures):
                freed += _remove(home, folder)
    return freed


def keep_within(home: Home, most: int = MOST_BYTES) -> int:
    """Remove the folders used longest ago until the others have at most so many bytes; return those freed.

    None that is in use goes, so more may be left.
    """
    total, freed = sum(unpacked_sizes(home).values()), 0
    for folder in sorted(_folders(home), key=_last_use):
        if total - freed <= most:
            break
        freed += _remove(home, folder)
    return freed


def unpacked_sizes(home: Home) -> dict[str, int]:
    """Return the bytes of each unpacked layer, by the layer's digest."""
    return {f"sha256:{folder.name}": _known_size(folder) for folder in _folders(home)}


def _folders(home: Home) -> list[Path]:
    roots = home.root / "roots"
    with storage_errors(roots):
        return [path for path in sorted(roots.iterdir() if roots.exists() else ()) if path.is_dir()]


def _remove(home: Home, folder: Path) -> int:
    """Remove a layer's folder unless it is in use; return its bytes."""
    size = _known_size(folder)
    with ExitStack() as stack, storage_errors(folder):
        scratch = None
        with suppress(StorageError):  # a full disk may take no more names
            scratch = stack.enter_context(home.scratch("unused"))
        try:
            with closing_descriptor(os.open(folder, FOLDER)) as descriptor:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if scratch is None or not _moved(folder, scratch):
                    _size_file(folder).unlink(missing_ok=True)  # without it, half of a folder is not whole
                    remove_tree(folder)
        except (BlockingIOError, FileNotFoundError):
            return 0  # it is in use, or another process was quicker
        _size_file(folder).unlink(missing_ok=True)
    return size


def _moved(folder: Path, scratch: Path) -> bool:
    """Move a folder away in one step, so that no run finds half of it, also when this process is killed.

    Return False where it has to be removed in its place: overlayfs moves no folder of a lower layer, as in a
    container whose image has a home, and ``roots`` may be on another disk.
    """
    try:
        folder.rename(scratch / folder.name)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    return True


def _keep(root: Path, final: Path, size: int) -> None:
    root.rename(final)
    atomic_write(_size_file(final), f"{size} {_FORM}:{_state(final)}".encode(), sync=False)


def _fault(folder: Path) -> str | None:
    """Return the fault in a layer's files, by their sizes and times; None if they are as unpacked."""
    note = _size_file(folder)
    try:
        noted = read_kept(note, _MOST_NOTE).decode("ascii").split()[1]
    except FileNotFoundError:
        return "were not unpacked to the end"
    except OSError as error:
        return f"are not known: {note.name}: {os.strerror(error.errno or 0)}"
    except (ValueError, IndexError):
        return f"are not known: {note.name} is damaged"
    form, _, state = noted.rpartition(":")
    if form != _FORM:
        return {_LOST: "cannot be read", _CHANGED: "do not match the image"}.get(form, _EARLIER)
    try:
        return None if state == _state(folder) else "were changed or lost"
    except OSError as error:
        return f"cannot be read: {os.strerror(error.errno or 0)}"


def _drop_damaged(host: Host, folder: Path) -> None:
    """Remove a folder that is there and not whole. Raises `ImageError` while it is in use."""
    if not folder.is_dir() or (fault := _fault(folder)) is None:
        return
    if fault != _EARLIER:  # an image has a hundred layers, and nothing is lost
        host.console.warn(f"{folder}: files of this unpacked layer {fault}: it is unpacked again")
    _remove(host.home, folder)
    if folder.is_dir():
        raise ImageError(
            f"{folder}: files of this unpacked layer {fault}, and a run uses it",
            hint="end the run that uses it, then run the command again",
        )


def _state(folder: Path) -> str:
    """Return a hash of the name, mode, owner, size and time of all that is in a folder.

    With it are the marks that overlayfs reads: a copy may have lost them, and another user's have another
    name. So a home that was copied, restored or given to another user is unpacked anew where it must be.
    """
    digest = hashlib.sha256(OPAQUE.encode())

    def add(path: bytes) -> None:
        try:
            entries = sorted(os.scandir(path), key=lambda entry: entry.name)
        except PermissionError:  # a layer's own; its owner here need not be root
            return
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            owner = (status.st_uid, status.st_gid)
            size = status.st_size if not stat.S_ISDIR(status.st_mode) else 0  # each file system has its own
            facts = (status.st_mode, *owner, size, status.st_mtime_ns)
            digest.update(b"%s\0%o %d %d %d %d\n" % (entry.name, *facts))
            if stat.S_ISDIR(status.st_mode):
                if OPAQUE in os.listxattr(entry.path, follow_symlinks=False):
                    digest.update(b"opaque\n")
                add(entry.path)
        digest.update(b"\n")

    with suppress(FileNotFoundError):
        add(os.fsencode(folder))
    return digest.hexdigest()


def _size_file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.size")


def _last_use(folder: Path) -> tuple[float, str]:
    with suppress(OSError):
        return _size_file(folder).stat().st_mtime, folder.name
    return 0.0, folder.name


def _known_size(folder: Path) -> int:
    with suppress(OSError, ValueError, IndexError):
        return int(read_kept(_size_file(folder), _MOST_NOTE).decode("ascii").split()[0])
    with suppress(OSError):  # what the disk does not give counts as nothing; whoever reads the layer names it
        return size_below(folder)  # what is noted of it is damaged
    return 0


def _extract(blob: Path, root: Path, advance: Callable[[int], None]) -> str:
    content = hashlib.sha256()
    try:
        with open_blob(blob) as file, closing_descriptor(os.open(root, FOLDER)) as descriptor:
            stream = layer_of(file)
            if stream is None:
                raise _damaged(blob, "it is not a layer")
            position = 0

            def seen(chunk: bytes) -> None:
                nonlocal position
                content.update(chunk)
                advance(file.tell() - position)
                position = file.tell()

            unpack_entries(Reader(stream, seen), descriptor, owners=os.geteuid() == 0, opaque=OPAQUE)
    except FileNotFoundError:
        raise damaged(f"sha256:{blob.name}", "it is missing") from None
    except LayerRefused as refused:
        raise _damaged(blob, str(refused)) from None
    return "sha256:" + content.hexdigest()


def _damaged(blob: Path, reason: str) -> ImageError:
    if fault := fault_of(blob):
        return damaged(f"sha256:{blob.name}", fault)
    return ImageError(
        f"{blob.name[:19]}…: the layer cannot be unpacked: {reason}",
        hint="its bytes are those of the base image: use another one",
    )
