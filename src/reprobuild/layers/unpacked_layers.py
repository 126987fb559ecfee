"""Layer blobs → folders that overlayfs can stack, each unpacked once and shared by all images."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ..errors import ImageError
from ..host.home import Home, atomic_write, storage_errors
from ..host.host import Host
from ..host.removal import remove_tree
from ..oci.file_tree import layer_of
from ..oci.tar_fields import LayerRefused
from ..oci.tar_reader import Reader
from .unpack import unpack_entries

MOST_BYTES = 30 * 10**9
"""Of unpacked layers together: about three CUDA images. `keep_within` removes those used longest ago."""

OPAQUE = ("trusted" if os.geteuid() == 0 else "user") + ".overlay.opaque"
"""The mark of a folder that hides what is below; an ordinary user's mounts have another (see sandbox.py)."""


def unpack(host: Host, blob: Path, diff_id: str, advance: Callable[[int], None]) -> Path:
    """Return the folder of a layer, unpacked and verified against ``diff_id`` when it is not there yet.

    As an ordinary user all files belong to that user, who is root in the sandbox. ``advance`` gets the
    blob's bytes as they are read. Raises `ImageError` when the blob is damaged.
    """
    name = diff_id.removeprefix("sha256:")
    final = host.home.folder("roots") / name
    if final.is_dir():
        return final
    with host.home.lock(f"root-{name[:16]}", host.console), host.home.scratch("root") as scratch:
        if final.is_dir():
            return final
        root = scratch / "root"
        with storage_errors(root):
            root.mkdir()
            root.chmod(0o755)  # whatever the umask
            found = _extract(blob, root, advance)
            if found != diff_id:
                raise _damaged(blob, "its bytes are not those of the image")
            size = _size(root)
            root.rename(final)
            atomic_write(_size_file(final), str(size).encode(), sync=False)
    return final


def take_over(host: Host, root: Path, diff_id: str, size: int) -> None:
    """Take a folder with the files of a layer, on the home's disk, as what `unpack` would make of it.

    ``size`` is that of its files, in bytes. Raises `StorageError`.
    """
    name = diff_id.removeprefix("sha256:")
    final = host.home.folder("roots") / name
    with host.home.lock(f"root-{name[:16]}", host.console), storage_errors(root):
        if not final.is_dir():
            root.rename(final)
            atomic_write(_size_file(final), str(size).encode(), sync=False)


@contextmanager
def in_use(folders: Sequence[Path]) -> Iterator[None]:
    """Keep `remove_unused` of other processes away from some layers' folders."""
    with ExitStack() as stack:
        for folder in folders:
            with suppress(OSError):
                os.utime(_size_file(folder))  # when it was used last
            try:
                descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                stack.callback(os.close, descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_SH)
                there = os.path.samestat(os.fstat(descriptor), folder.stat())
            except FileNotFoundError:
                there = False
            if not there:
                raise ImageError(
                    f"{folder}: an unpacked layer was removed by another process",
                    hint="run the command again",
                )
        yield


def remove_unused(home: Home, wanted: Collection[str]) -> int:
    """Remove the folders of layers that are neither ``wanted``, by digest, nor in use; return their bytes."""
    unwanted = [folder for folder in _folders(home) if f"sha256:{folder.name}" not in wanted]
    return sum(_remove(home, folder) for folder in unwanted)


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
    return [path for path in sorted(home.folder("roots").iterdir()) if path.is_dir()]


def _remove(home: Home, folder: Path) -> int:
    """Remove a layer's folder unless it is in use; return its bytes."""
    size = _known_size(folder)
    with home.scratch("unused") as scratch, storage_errors(scratch):
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            return 0  # another process was quicker
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # In one step, so that no run finds half of it, also when this process is killed.
            gone = folder.rename(scratch / folder.name)
        except (BlockingIOError, FileNotFoundError):
            return 0
        finally:
            os.close(descriptor)
        _size_file(folder).unlink(missing_ok=True)
        remove_tree(gone)
    return size


def _size_file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.size")


def _last_use(folder: Path) -> tuple[float, str]:
    with suppress(OSError):
        return _size_file(folder).stat().st_mtime, folder.name
    return 0.0, folder.name


def _known_size(folder: Path) -> int:
    with suppress(OSError, ValueError):
        return int(_size_file(folder).read_text("ascii"))
    return _size(folder)  # of an earlier version


def _size(folder: Path) -> int:
    return sum(p.lstat().st_size for p in folder.rglob("*") if p.is_file() and not p.is_symlink())


def _extract(blob: Path, root: Path, advance: Callable[[int], None]) -> str:
    content = hashlib.sha256()
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with blob.open("rb") as file:
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
    except LayerRefused as refused:
        raise _damaged(blob, str(refused)) from None
    finally:
        os.close(descriptor)
    return "sha256:" + content.hexdigest()


def _damaged(blob: Path, reason: str) -> ImageError:
    return ImageError(
        f"{blob.name[:19]}…: the layer cannot be unpacked: {reason}",
        hint="of a base image: use another one; of an image that was built here: `reprobuild clean --all`"
        " empties the stores, and the next run builds it again",
    )
