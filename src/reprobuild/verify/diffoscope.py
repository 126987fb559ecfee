"""What differs inside two files of the same path, as diffoscope tells it where it is installed."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..host import process
from ..host.home import atomic_write, make_folders
from ..host.host import Host
from ..oci.file_tree import layer_of
from .compare import Difference
from .find import members_of

_FILES, _LIMIT = 5, 64 << 20
"""How many files are looked into, and the size up to which one is: diffoscope takes its time."""

_BARE = "--exclude-directory-metadata=yes"
"""Times and owners are those of the copies that it looks at."""


def diffoscope(found: Sequence[Difference], images: tuple[str, str], host: Host) -> str:
    """Return diffoscope's account of the first files whose content differs; empty without diffoscope."""
    program = process.which("diffoscope")
    changed = [each for each in found if each.kind == "content"][:_FILES]
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
    """Write some files of an image below a folder, by path and sha256, from whatever layer has them."""
    with members_of(image, host) as (members, _):
        for member in members:
            if member.file is None or (stream := layer_of(member.file)) is None:
                continue
            with tarfile.open(fileobj=stream, mode="r|") as tar:
                for entry in tar:
                    path = entry.name.removeprefix("./").strip("/")
                    if path not in wanted or not entry.isfile() or entry.size > _LIMIT:
                        continue
                    file = tar.extractfile(entry)
                    content = file.read() if file is not None else b""
                    if hashlib.sha256(content).hexdigest() == wanted[path]:
                        make_folders((folder / path).parent)
                        atomic_write(folder / path, content)
