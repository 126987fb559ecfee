"""Layers and the one archive that is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reprobuild.oci.documents import sha256
from reprobuild.oci.file_tree import ImageTree, read_root
from reprobuild.oci.flatten import write_root
from reprobuild.oci.stream import piped
from support.images import Entry, layer

LINKED = "0" * 150


def blobs(folder: Path, *layers: bytes) -> list[tuple[Path, str]]:
    found = []
    for tar in layers:
        path = folder / sha256(tar)[7:]
        path.write_bytes(tar)
        found.append((path, sha256(tar)))
    return found


def flat(layers: list[tuple[Path, str]], instead: Mapping[str, tuple[int, bytes]] | None = None) -> ImageTree:
    with piped(lambda out: write_root(layers, out.write, instead or {})) as tar:
        return read_root(tar, "it", {})


BELOW = layer(
    "etc/",
    Entry(path="etc/stays", content=b"it", mode=0o4755, uid=70000),
    "etc/goes",
    Entry(path="first", content=b"one"),
    Entry(path="second", kind=b"1", target="first"),
    Entry(path="third", kind=b"1", target="first"),
    "folder/",
    "folder/inside",
    Entry(path="link", kind=b"2", target=LINKED),
    Entry(path="fifo", kind=b"6"),
)


ABOVE = layer(
    "etc/.wh.goes",
    Entry(path="first", content=b"another"),
    Entry(path="folder", content=b"a file now"),
    Entry(path="ping", content=b"it", attributes={"user.note": "kept"}),
    Entry(path="deep/er/new", content=bytes(1 << 21)),
)
