"""The tar of a layer → what it puts over those below; layers laid over each other (image-spec, layer.md)."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from .tar_fields import LayerRefused
from .tar_reader import Entry, Readable, Reader
from .tar_writer import Record

_HIDES, _OPAQUE = ".wh.", ".wh..wh..opq"
MOST_KEPT = 64 << 20
"""Bytes of a file whose content is looked at; a Python with all its modules built in has about 30 MB."""

Keep = Callable[[str, int], bool]
"""Whether a file's content is wanted too, by its path without a leading slash and its size in bytes."""


@dataclass(slots=True)
class LayerFiles:
    """What a layer puts over those below."""

    entries: dict[str, Record] = field(default_factory=dict)
    links: list[tuple[str, str]] = field(default_factory=list)
    """Second names of files, with the first, which may lie below."""
    gone: list[str] = field(default_factory=list)
    emptied: list[str] = field(default_factory=list)

    def drop_below(self, folder: str) -> None:
        """Take out what is in a folder."""
        below = f"{folder}/"
        self.entries = {path: entry for path, entry in self.entries.items() if not path.startswith(below)}
        self.links = [pair for pair in self.links if not pair[0].startswith(below)]

    def check_links(self) -> None:
        """Raise `LayerRefused` for a second name whose first is none of this layer's own."""
        known = self.entries.keys() | {path for path, _ in self.links}
        for path, first in self.links:
            if first not in known or (first in self.entries and self.entries[first].kind == "dir"):
                raise LayerRefused(f"{path!r} is a hard link to {first!r}, which is not a file of this layer")


def read_layer(
    stream: Readable | None,
    keep: Keep,
    contents: dict[str, bytes],
    seen: Callable[[bytes], object] | None = None,
    *,
    flat: bool = False,
) -> LayerFiles:
    """Return what a layer has; the content of those files that ``keep`` names goes to ``contents``, by hash.

    ``seen`` is given every byte of the tar. ``flat``: it is a whole root, in which no name hides another.
    Raises `LayerRefused`.
    """
    if stream is None:
        raise LayerRefused("it is not a layer of an image")
    layer, folders = LayerFiles(), _Folders()
    reader = Reader(stream) if seen is None else Reader(stream, seen)
    for entry in reader:
        if folders.hold(entry, flat=flat):
            layer.drop_below(entry.path)
        if not flat and _is_mark(entry.path, layer):
            continue
        _read_entry(reader, entry, layer, keep, contents)
    return layer


class _Folders:
    """What of a layer is a folder: `layers.unpack` refuses what is below anything else, in the same words."""

    def __init__(self) -> None:
        self._good: set[str] = {""}
        self._others: set[str] = set()

    def hold(self, entry: Entry, *, flat: bool) -> bool:
        """Return whether an entry takes the place of a folder of this layer. Raises `LayerRefused`."""
        parts = entry.path.split("/")
        above = "/".join(parts[:-1])
        if above not in self._good:
            for end in range(1, len(parts)):
                folder = "/".join(parts[:end])
                if parts[end - 1].startswith(_HIDES) and not flat:
                    raise LayerRefused(f"{folder!r} removes a file, and has others in it")
                if folder in self._others:
                    raise LayerRefused(f"{folder!r} is not a folder, but has files in it")
                self._good.add(folder)
        if entry.kind == "dir":
            self._others.discard(entry.path)
        elif entry.path:
            self._others.add(entry.path)
            if entry.path in self._good:
                below = f"{entry.path}/"
                self._good = {path for path in self._good if not f"{path}/".startswith(below)}
                return True
        return False


def _is_mark(path: str, layer: LayerFiles) -> bool:
    """Whether an entry says what is hidden of the layers below; the layer then knows it."""
    folder, _, base = path.rpartition("/")
    if base == _OPAQUE:
        layer.emptied.append(folder)
    elif base.startswith(_HIDES):
        if base.removeprefix(_HIDES) in ("", ".", ".."):
            raise LayerRefused(f"{path!r} removes nothing that has a name")
        layer.gone.append(posixpath.join(folder, base.removeprefix(_HIDES)))
    else:
        return False
    return True


def _read_entry(
    reader: Reader,
    entry: Entry,
    layer: LayerFiles,
    keep: Keep,
    contents: dict[str, bytes],
) -> None:
    path, mode, more = entry.path, entry.mode, entry.attributes
    owner = f"{entry.uid}:{entry.gid}"
    if not path:
        return  # the root itself, which builders do not carry over
    if entry.kind == "hardlink":
        layer.links.append((path, entry.target))
    elif entry.kind == "file":
        wanted = keep(path, entry.size)
        digest, kept = _content(reader, entry, keep=wanted)
        if wanted:
            contents[digest] = kept
        layer.entries[path] = Record(path, "file", mode, digest, owner, more)
    elif entry.kind == "dir":
        layer.entries[path] = Record(path, "dir", mode, "-", owner, more)
    elif entry.kind == "link":
        layer.entries[path] = Record(path, "link", 0o777, entry.target, owner, more)
    else:
        layer.entries[path] = Record(path, "other", mode, _what(entry), owner, more)


def _what(entry: Entry) -> str:
    """Return type and numbers as the tar's header has them."""
    return f"6 {entry.device}" if entry.kind == "fifo" else f"3 {entry.device}"


def _content(reader: Reader, entry: Entry, *, keep: bool) -> tuple[str, bytes]:
    if keep and entry.size > MOST_KEPT:
        raise LayerRefused(
            f"{entry.path!r} has {entry.size:,} bytes; at most {MOST_KEPT:,} of it are looked at"
        )
    content, kept = hashlib.sha256(), list[bytes]()
    for chunk in reader.content():
        content.update(chunk)
        if keep:
            kept.append(chunk)
    return content.hexdigest(), b"".join(kept)


def laid_over(layers: Iterable[LayerFiles]) -> dict[str, Record]:
    """Return all files of some layers, the lowest first. Raises `LayerRefused` for a link to no file."""
    files: dict[str, Record] = {}
    for layer in layers:
        for path in layer.gone:
            files.pop(path, None)
        replaced = {p for p, r in layer.entries.items() if r.kind != "dir" and p in files}
        covers = {p for p in replaced if files[p].kind == "dir"}
        _drop_below({*layer.gone, *layer.emptied, *covers}, files)
        files |= layer.entries
        for path, first in layer.links:
            if first not in files:
                raise LayerRefused(f"{path!r} is a second name of {first!r}, which is not there")
            files[path] = replace(files[first], path=path)
    # A folder that no layer names is made by whoever unpacks.
    for path in list(files):
        above = path.rpartition("/")[0]
        while above and above not in files:
            files[above] = Record(above, "dir", 0o755, "-")
            above = above.rpartition("/")[0]
    return files


def _drop_below(folders: set[str], files: dict[str, Record]) -> None:
    if not folders:
        return
    for path in list(files):
        above = path.rpartition("/")[0]
        while above:
            if above in folders:
                del files[path]
                break
            above = above.rpartition("/")[0]
