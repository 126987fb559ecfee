"""Differences inside two files of the same path, by diffoscope where it is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..host import process
from ..host.console import one_line
from ..host.home import atomic_write, make_folders
from ..host.host import Host
from ..oci.merge_layers import MOST_KEPT
from .compare import Difference
from .find import tree_of

_FILES = 5
"""Files that are compared at most: diffoscope is slow."""

_BARE = "--exclude-directory-metadata=yes"
"""Times and owners are those of the copies that it looks at."""


def diffoscope(found: Sequence[Difference], images: tuple[str, str], host: Host) -> str:
    """Return diffoscope's output for the first differing files; empty without diffoscope."""
    program = process.which("diffoscope")
    # It writes names as they are: a line break in one would make a line of its own.
    changed = [each for each in found if each.kind == "content" and each.path == one_line(each.path)][:_FILES]
    if program is None or not changed:
        return ""
    host.console.step("asking diffoscope what differs inside them")
    hashes = ({d.path[1:]: d.first for d in changed}, {d.path[1:]: d.second for d in changed})
    with host.home.scratch("compare") as folder:
        for name, image, wanted in zip("ab", images, hashes, strict=True):
            make_folders(folder / name)
            _extract(image, wanted, folder / name, host)
        command = [program, "--text", "-", "--no-progress", _BARE, str(folder / "a"), str(folder / "b")]
        return process.run(command, check=False).stdout.decode("utf-8", "replace").replace(f"{folder}/", "")


def _extract(image: str, wanted: Mapping[str, str], folder: Path, host: Host) -> None:
    """Write some files of an image below a folder, by path and sha256."""
    tree = tree_of(image, host, keep=lambda path, size: path in wanted and size <= MOST_KEPT)
    for path, content in tree.kept.items():
        if tree.files[path].content == wanted[path]:
            make_folders((folder / path).parent)
            atomic_write(folder / path, content)
