"""An image's root → one tar, read where an engine keeps it on this disk: nothing is written for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ..host import namespaces, process

_TAR = (
    *("--create", "--file=-", "--blocking-factor=2048", "--format=posix", "--numeric-owner"),
    *("--xattrs", "--xattrs-include=*"),
    # Times do not count, and those below a second would take a header for each file.
    *("--mtime=@0", "--pax-option=delete=atime,delete=ctime"),
)

# $1 the folder, $2 the lower layers, then the command. The mount ends with the namespace, whatever ends that.
_STACK = """
cd "$1" && LIBMOUNT_FORCE_MOUNT2=always mount -t overlay -o "ro,nodev,nosuid,lowerdir=$2" overlay root &&
shift 2 && exec "$@"
"""


def tar_command(root: str) -> list[str]:
    """Return the command that writes the tar of a folder to standard output."""
    return [process.require("tar", "to read an image of an engine"), *_TAR, "--directory", root, "."]


@contextmanager
def stacked(layers: Sequence[Path], folder: Path) -> Iterator[IO[bytes]]:
    """Give the tar of overlayfs layers laid over each other, the lowest first; ``folder`` is an empty one.

    It takes root, to whom the layers belong. Raises `process.ProcessFailed`.
    """
    (folder / "root").mkdir()
    names = ["empty", "empty2"]  # overlayfs wants two at least
    for name in names:
        (folder / name).mkdir()
    # The mount's options must fit on one page, so each layer gets a short name.
    for index, layer in enumerate(layers):
        (folder / str(index)).symlink_to(layer)
        names.insert(0, str(index))
    command = [*namespaces.prefix(), "sh", "-c", _STACK, "sh", str(folder), ":".join(names)]
    with process.stream([*command, *tar_command("root")]) as tar:
        yield tar
