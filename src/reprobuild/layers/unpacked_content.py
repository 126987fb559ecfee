"""Compare unpacked layers with their image by content: a disk can change bytes and neither size nor time."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..host.descriptors import closing_descriptor
from ..host.host import Host
from ..host.os_reasons import UNREADABLE
from ..host.workers import sha256_of, workers
from ..oci.tar_writer import Record
from .unpacked_layers import distrust

_TO_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def distrust_changed(host: Host, folders: Sequence[Path], files: Mapping[str, Record]) -> bool:
    """Hash the files of an image's unpacked layers, the lowest first; return whether one is not as it was.

    ``files`` are those of the image, by path. Each layer that differs is named, and unpacked anew by the
    next run. A file that another layer covers is not read. Raises `StorageError`.
    """
    layers: dict[str, Path] = {}
    for folder in folders:
        layers.update(dict.fromkeys(_paths(os.fsencode(folder)), folder))
    wanted = [(layers[path], files[path]) for path in layers.keys() & files.keys()]
    with workers(len(os.sched_getaffinity(0))) as pool:
        faults = pool.map(lambda each: _fault(*each), wanted)
        changed = {
            folder: (record.path, fault)
            for (folder, record), fault in zip(wanted, faults, strict=True)
            if fault is not None
        }
    for folder, (path, fault) in sorted(changed.items()):
        host.console.warn(f"{folder}/{path}: {fault}: runs until now may have used it")
        distrust(folder)
    return bool(changed)


def _paths(folder: bytes) -> Iterator[str]:
    """Yield the paths of the files and links below a folder."""
    left = [b""]
    while left:
        inside = left.pop()
        try:
            entries = list(os.scandir(folder + b"/" + inside))
        except PermissionError:  # as in `unpacked_layers._state`
            continue
        for entry in entries:
            name = inside + entry.name
            if entry.is_dir(follow_symlinks=False):
                left.append(name + b"/")
            else:
                yield name.decode("utf-8", "surrogateescape")


def _fault(folder: Path, record: Record) -> str | None:
    """Return the fault of an unpacked file or link; None for one that is as the image has it."""
    # A path is UTF-8 in a tar, whatever this process's locale.
    path = Path(os.fsdecode(os.fsencode(folder) + b"/" + record.path.encode("utf-8", "surrogateescape")))
    try:
        if record.kind == "link":
            found = os.fsencode(path.readlink()).decode("utf-8", "surrogateescape")
        elif record.kind == "file":
            with closing_descriptor(os.open(path, _TO_READ)) as descriptor:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    return "is not a file any more"
                with open(descriptor, "rb", closefd=False) as file:
                    found = sha256_of(file)
        else:
            return None
    except PermissionError:  # the image's own: its owner here need not be root
        return None
    except OSError as error:
        if error.errno not in UNREADABLE:
            raise
        return os.strerror(error.errno or 0)
    return None if found == record.content else "its bytes are not those of the image"
