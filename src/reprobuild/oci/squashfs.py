"""Export an image as a squashfs file in enroot's layout, reproducibly.

enroot, and pyxis with it, mounts such a file as it is, without unpacking anything. Its layout is the root and
three files beside: ``/etc/rc`` starts the program, ``/etc/fstab`` names mounts, ``/etc/environment`` holds
the variables (enroot, doc/image-format.md).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ImageError, StorageError
from ..host import process
from ..host.home import raise_if_full
from ..host.outputs import one_writer
from .flatten import write_root
from .store import Image, ImageStore
from .tar_fields import LayerRefused
from .tar_writer import MTIME

_RC = """\
mkdir -p {folder} 2> /dev/null
cd {folder} && unset OLDPWD || exit 1

if [ -s /etc/rc.local ]; then
    . /etc/rc.local
fi

if [ $# -gt 0 ]; then
    exec "$@"
else
    exec {command}
fi
"""
_OPTIONS = (
    *("-tar", "-noappend", "-quiet", "-no-progress", "-exit-on-error"),
    *("-comp", "zstd", "-Xcompression-level", "1"),
    *("-mkfs-time", str(MTIME), "-all-time", str(MTIME), "-root-mode", "755"),
    *("-root-uid", "0", "-root-gid", "0"),
)


def export_squashfs(images: ImageStore, image: Image, file: Path) -> None:
    """Write an image as a squashfs file, which is there as a whole or not at all.

    Raises `HostError` without squashfs-tools 4.5 or newer, `ImageError` when a blob is missing or damaged,
    `StorageError`.
    """
    program = process.require("mksquashfs", "to write a squashfs file")
    layers = images.layers(image.digest)
    instead = enroot_files(images.config(image.digest)["config"])
    with one_writer(file, images.console) as partial:
        try:
            process.feed(
                [program, "-", str(partial), *_OPTIONS], lambda write: write_root(layers, write, instead)
            )
            partial.chmod(0o644)
        except process.ProcessFailed as failed:
            raise_if_full(failed.tail, file.parent)
            raise StorageError(f"{file}: mksquashfs could not write it: {failed.tail}") from None
        except LayerRefused as refused:
            raise ImageError(f"{image.digest[:19]}: cannot be written as one root: {refused}") from None


def enroot_files(config: Mapping[str, Any]) -> Mapping[str, tuple[int, bytes]]:
    """Return enroot's three files by path, each with its mode, for an image's configuration."""
    rc = _RC.format(folder=shlex.quote(config["WorkingDir"]), command=shlex.join(config["Cmd"]))
    environment = "".join(f"{line}\n" for line in config["Env"])
    return {
        "etc/environment": (0o644, environment.encode()),
        "etc/fstab": (0o644, b""),
        "etc/rc": (0o755, rc.encode()),
    }
