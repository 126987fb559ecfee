"""Merge layers: the files that each adds, replaces and removes (image-spec, layer.md)."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from .path_index import PathIndex
from .tar_fields import LayerRefused
from .tar_reader import Entry, Readable, Reader
from .tar_writer import Record

_HIDES, _OPAQUE = ".wh.", ".wh..wh..opq"
MOST_KEPT = 64 << 20
"""Bytes of a file whose content is looked at; a Python with all its modules built in has about 30 MB."""

MOST_KEPT_TOGETHER = 4 * MOST_KEPT
"""Bytes of all such files of an image."""

Keep = Callable[[str, int], bool]
"""Whether a file's content is wanted too, by its path without a leading slash and its size in bytes."""


class KeptContents(dict[str, bytes]):
    """The content of some files, by hash."""

    def __init__(self) -> None:
        super().__init__()
        self._size = 0

    def keep(self, digest: str, content: bytes) -> None:
        """Add one. Raises `LayerRefused` beyond `MOST_KEPT_TOGETHER`."""
        if digest not in self:
            self._size += len(content)
            self[digest] = content
        if self._size > MOST_KEPT_TOGETHER:
            raise LayerRefused(
                f"it has more than {MOST_KEPT_TOGETHER:,} bytes in files whose content is looked at"
            )


@dataclass(slots=True)
class LayerFiles:
    """The changes that a layer makes to those below."""

    entries: dict[str, Record] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    """Hard links to files that this layer does not contain, with their targets."""
    strays: list[tuple[str, str]] = field(default_factory=list)
    """All second names whose first was none of this layer's own when they came."""
    gone: list[str] = field(default_factory=list)
    emptied: list[str] = field(default_factory=list)

    def drop(self, path: str) -> None:
        """Remove a path, if present."""
        self.entries.pop(path, None)
        self.links.pop(path, None)

    def link(self, entry: Entry) -> None:
        """Give a second name to the file that another path now has. Raises `LayerRefused`."""
        path, first = entry.path, entry.target
        found = self.entries.get(first)
        if found is None or found.kind == "dir":
            self.links[path] = first
            self.strays.append((path, first))
        else:
            if found.kind == "file":
                hold_link(entry, found.mode, found.owner, found.attributes)
            self.entries[path] = replace(found, path=path)

    def check_links(self) -> None:
        """Raise `LayerRefused` for a hard link to a file of another layer."""
        for path, first in self.strays:
            raise LayerRefused(f"{path!r} is a hard link to {first!r}, which is not a file of this layer")


def read_layer(
    stream: Readable | None,
    keep: Keep,
    contents: KeptContents,
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
    marks: list[str] = []
    for entry in reader:
        if not flat and entry.path.rpartition("/")[2].startswith(_HIDES):
            marks.append(entry.path)
            if (there := removed(entry.path)) in layer.entries or there in layer.links:
                raise LayerRefused(removed_again(there))
            continue
        for path in folders.hold(entry, flat=flat):
            layer.drop(path)
        layer.drop(entry.path)
        _read_entry(reader, entry, layer, keep, contents)
    for path in marks:
        folders.enter(path, flat=flat)
        if (hidden := _mark(path, layer)) is not None:
            folders.hide(hidden)
    for path in layer.gone:
        if folders.has(path) and path not in layer.emptied:
            raise LayerRefused(made_anew(path))
    return layer


def hold_link(entry: Entry, mode: int, owner: str, attributes: str) -> None:
    """Raise `LayerRefused` for a hard link whose header says something else than that of its file.

    Docker and Podman give the file, and so all of its names, what the last header says: a setuid bit, too.
    """
    if (entry.mode, f"{entry.uid}:{entry.gid}") != (mode, owner) or entry.attributes not in ("", attributes):
        raise LayerRefused(
            f"{entry.path!r} is a hard link to {entry.target!r} with another mode, owner or attribute"
        )


def made_anew(path: str) -> str:
    """Return why a layer is refused that removes a folder and has one of that name.

    By the image specification (layer.md, "Whiteouts") what is below is hidden; Docker, Podman and containerd
    show it.
    """
    return f"{path!r} is removed and a folder in one layer, on which engines differ"


def removed(path: str) -> str:
    """Return the path that a whiteout removes from the layers below."""
    folder, _, base = path.rpartition("/")
    return posixpath.join(folder, base.removeprefix(_HIDES))


def removed_again(path: str) -> str:
    """Return why a layer is refused that removes what it has made.

    A whiteout is for the layers below (layer.md). Docker 20.10 and Podman refuse it, containerd removes it.
    """
    return f"{path!r} is made and then removed in one layer, on which engines differ"


class _Folders:
    """What of a layer is a folder: `layers.unpack` refuses what is below anything else, in the same words."""

    def __init__(self) -> None:
        self._good: set[str] = {""}
        self._others: set[str] = set()
        self._index = PathIndex()

    def enter(self, path: str, *, flat: bool) -> None:
        """Make the folders above a path. Raises `LayerRefused`."""
        parts = path.split("/")
        if "/".join(parts[:-1]) in self._good:
            return
        for end in range(1, len(parts)):
            folder = "/".join(parts[:end])
            if parts[end - 1].startswith(_HIDES) and not flat:
                raise LayerRefused(f"{folder!r} removes a file, and has others in it")
            if folder in self._others:
                raise LayerRefused(f"{folder!r} is not a folder, but has files in it")
            self._good.add(folder)

    def has(self, path: str) -> bool:
        """Whether a path is a folder of this layer."""
        return path in self._good

    def hide(self, path: str) -> None:
        """Take a path that is hidden: unpacked, it is a node where this layer has no folder of that name."""
        if path not in self._good:
            self._others.add(path)

    def hold(self, entry: Entry, *, flat: bool) -> list[str]:
        """Take an entry; return what was in the folder in whose place it is. Raises `LayerRefused`."""
        self.enter(entry.path, flat=flat)
        self._index.add(entry.path)
        if entry.kind == "dir":
            self._others.discard(entry.path)
            self._good.add(entry.path)
            return []
        if entry.path:
            self._others.add(entry.path)
        if not entry.path or entry.path not in self._good:
            return []
        gone = list(self._index.take_below(entry.path))
        self._good.difference_update(gone, [entry.path])
        self._others.difference_update(gone)
        return gone


def _mark(path: str, layer: LayerFiles) -> str | None:
    """Note what an entry hides of the layers below; return the path, None where that is all in a folder."""
    folder, _, base = path.rpartition("/")
    if base == _OPAQUE:
        layer.emptied.append(folder)
        return None
    name = base.removeprefix(_HIDES)
    if name in ("", ".", ".."):
        raise LayerRefused(f"{path!r} removes nothing that has a name")
    layer.gone.append(posixpath.join(folder, name))
    return layer.gone[-1]


def _read_entry(
    reader: Reader,
    entry: Entry,
    layer: LayerFiles,
    keep: Keep,
    contents: KeptContents,
) -> None:
    path, mode, more = entry.path, entry.mode, entry.attributes
    owner = f"{entry.uid}:{entry.gid}"
    if not path:
        return  # the root itself, which builders do not carry over
    if entry.kind == "hardlink":
        layer.link(entry)
    elif entry.kind == "file":
        wanted = keep(path, entry.size)
        digest, kept = _content(reader, entry, keep=wanted)
        if wanted:
            contents.keep(digest, kept)
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
    """Return all files of some layers, the lowest first.

    Raises `LayerRefused` for a link to no file, and for what is below a link or file of a lower layer.
    """
    files: dict[str, Record] = {}
    index = PathIndex()
    for layer in layers:
        for path in layer.gone:
            files.pop(path, None)
        others = (path for path, record in layer.entries.items() if record.kind != "dir")
        covers = {path for path in (*others, *layer.links) if path in files and files[path].kind == "dir"}
        # Overlayfs merges the root itself, whatever its marks.
        for folder in {*layer.gone, *layer.emptied, *covers} - {""}:
            for path in index.take_below(folder):
                files.pop(path, None)
        for path in _implied_folders(layer, files):
            files[path] = Record(path, "dir", 0o755, "-")
            index.add(path)
        for path, first in layer.links.items():
            if first not in files or files[first].kind == "dir":
                raise LayerRefused(f"{path!r} is a second name of {first!r}, which is not a file")
            files[path] = replace(files[first], path=path)
        files |= layer.entries
        for path in (*layer.links, *layer.entries):
            index.add(path)
    return files


def _implied_folders(layer: LayerFiles, files: Mapping[str, Record]) -> list[str]:
    """Return the folders that a layer has something in and does not name, and that are new.

    Whoever unpacks makes them, for a whiteout too. Raises `LayerRefused` where those below have something
    else there: some tools make the folder in its place, others follow the link. And where they have a folder
    of other rights: Docker with overlay2 and Podman show a new one, containerd keeps the rights.
    """
    found: list[str] = []
    good = {""}
    named = (*layer.entries, *layer.links, *layer.gone, *(f"{folder}/" for folder in layer.emptied))
    for path in named:
        folder = path.rpartition("/")[0]
        while folder not in good:
            good.add(folder)
            own, below = layer.entries.get(folder), files.get(folder)
            there = own or below
            if there is None:
                found.append(folder)
            elif there.kind != "dir":
                raise LayerRefused(f"{folder!r} is not a folder, but has files in it")
            elif own is None and (there.mode, there.owner, there.attributes) != (0o755, "0:0", ""):
                raise LayerRefused(
                    f"{folder!r} has files in a layer that does not name it, and is of mode {there.mode:o},"
                    f" owner {there.owner} or has attributes below, which not all engines keep"
                )
            folder = folder.rpartition("/")[0]
    return found
