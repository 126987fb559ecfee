"""A small real root: a few of this machine's programs with their libraries, as a layer or as an image."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.layers.cache import Cached, LayerCache
from reprobuild.layers.image_documents import documents
from reprobuild.lock.model import Lock
from reprobuild.oci.store import ImageStore
from reprobuild.oci.tar_writer import Layer, LayerWriter
from reprobuild.render.image_config import image_config
from support.locks import LOCK

PROGRAMS = (
    "bash",
    "cat",
    "chmod",
    "env",
    "head",
    "id",
    "ls",
    "mkdir",
    "mount",
    "sh",
    "sleep",
    "tty",
    "unshare",
)


def files_of(programs: Sequence[str] = PROGRAMS) -> dict[str, Path]:
    """Return path in the root → file of this machine."""
    found = {}
    for name in programs:
        program = shutil.which(name)
        assert program, name
        found[f"usr/bin/{name}"] = Path(program)
        listing = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r"(/\S+) \(0x", listing):
            found[library.lstrip("/")] = Path(library)
    return dict(sorted(found.items()))


def make_folder(folder: Path) -> Path:
    """Lay the root out as an unpacked layer, readable by all."""
    for path, source in files_of().items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.resolve(), target)
        target.chmod(0o755)
    (folder / "bin").symlink_to("usr/bin")
    for name in ("etc", "home"):
        (folder / name).mkdir()
    (folder / "etc/who").write_text("below\n")
    for part in [folder, *folder.rglob("*")]:
        if part.is_dir() and not part.is_symlink():
            part.chmod(0o755)
    return folder


def layer_of(home: Home, files: Mapping[str, bytes | str], *, key: str = "test") -> Layer:
    """Put a layer into the store: path → bytes of a program, or the target of a link; folders are made."""
    with home.scratch("test") as scratch:
        path = scratch / "blob"
        with path.open("wb") as out:
            writer = LayerWriter(out)
            made: set[str] = set()
            for name, content in sorted(files.items()):
                for above in reversed(Path(name).parents):
                    if (folder := str(above)) not in made:
                        writer.folder(folder)
                        made.add(folder)
                if isinstance(content, str):
                    writer.link(name, content)
                else:
                    writer.file(name, 0o755, len(content), [content])
            layer = writer.close()
        LayerCache(home).put(key, path, Cached(layer, tuple(writer.records)))
    return layer


def small_image(home: Home, lock: Lock = LOCK, **more: bytes | str) -> str:
    """Put an image whose programs run into the store, without a name; return its digest.

    ``more``: path → bytes of a program, or the target of a link.
    """
    programs: dict[str, bytes | str] = {path: source.read_bytes() for path, source in files_of().items()}
    below = layer_of(home, {**programs, "bin": "usr/bin", "etc/who": b"below\n"}, key="below")
    above = layer_of(home, {"etc/who": b"above\n", **more}, key="above")
    config = replace(image_config(lock), cmd=("/bin/cat", "/etc/who"))
    image = documents(lock, config, [("programs", below), ("its own", above)])
    return ImageStore(Host(home, Console(quiet=True))).add(image)
