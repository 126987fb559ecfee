"""An image's archive → every file of the image as a container would see it, and the digest over them all.

Reads what ``docker save``, ``podman save``, an OCI archive or an OCI layout hold, as it goes by: layers with
any of the usual compressions, laid over each other by the rules of the image specification (layer.md).
"""

from __future__ import annotations

import gzip
import hashlib
import posixpath
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import IO, Any, cast

import zstandard

from ..errors import ImageError
from .described import Archive, Part
from .documents import DOCUMENT_LIMIT
from .stream import CHUNK, Member
from .tar_fields import LayerRefused
from .tar_reader import Entry, Reader
from .tar_writer import Record

_HIDES, _OPAQUE = ".wh.", ".wh..wh..opq"
MOST_KEPT = 64 << 20
"""Bytes of a file whose content is looked at; a Python with all its modules built in has about 30 MB."""
MOST_DOCUMENTS = 64 << 20
"""Bytes of all JSON documents of an archive."""


@dataclass(frozen=True, slots=True)
class ImageTree:
    """The files of an image by path, without a leading slash, and ``config`` of its configuration."""

    files: Mapping[str, Record]
    config: Mapping[str, Any]
    kept: Mapping[str, bytes] = field(default_factory=dict)
    """The content of those files that the reader was told to keep, by path."""

    @property
    def digest(self) -> str:
        """``sha256:…`` over path, type, mode, owner and content of every file; no time stamp is in it."""
        return tree_digest(self.files.values())


def tree_digest(records: Iterable[Record]) -> str:
    """Return the digest of an image with these paths, in any order; `in_image/debian_root.py` has it too."""
    content = hashlib.sha256()
    for record in sorted(records, key=lambda record: record.path):
        line = (record.path, record.kind, f"{record.mode:o}", record.owner, record.content)
        content.update("\0".join(line).encode("utf-8", "surrogateescape") + b"\0\n")
    return "sha256:" + content.hexdigest()


@dataclass(slots=True)
class _Layer:
    """What a layer puts over those below."""

    entries: dict[str, Record] = field(default_factory=dict)
    links: list[tuple[str, str]] = field(default_factory=list)
    """Second names of files, with the first, which may lie below."""
    gone: list[str] = field(default_factory=list)
    emptied: list[str] = field(default_factory=list)


def _nothing(_: str) -> bool:
    return False


def read_tree(
    members: Iterable[Member],
    where: str,
    name: str | None = None,
    *,
    keep: Callable[[str], bool] = _nothing,
    expected: str | None = None,
) -> ImageTree:
    """Return the tree of the one image of an archive, or of that with a name, all held against its digests.

    ``keep`` says by its path whether a file's content is wanted too; such files have a few megabytes.
    ``expected`` is the digest by which an engine knows the image. Raises `ImageError` that names ``where``
    when there is none, or none that can be read.
    """
    documents: dict[str, bytes] = {}
    parts: dict[str, Part] = {}
    layers: dict[str, _Layer] = {}
    links: dict[str, str] = {}
    contents: dict[str, bytes] = {}
    try:
        for member in members:
            _check_new(member.name, parts)
            _check_new(member.name, links)
            if member.file is None:
                links[member.name] = member.target
                continue
            hashed = _Hashed(member.file)
            file, tar = cast("BufferedReader", BufferedReader(hashed, CHUNK)), hashlib.sha256()
            diff_id = ""
            if (stream := layer_of(file)) is not None:
                # What is not compressed is hashed once, for both digests.
                seen = tar.update if stream is not file else None
                layers[member.name] = _read_layer(stream, keep, contents, seen)
                diff_id = f"sha256:{tar.hexdigest()}" if seen else "its own"
            elif file.peek(1)[:1] in (b"{", b"["):
                documents[member.name] = _document(file, member.name, documents)
            while file.read(CHUNK):
                pass  # what follows the layer is in its digest too
            diff_id = hashed.digest if diff_id == "its own" else diff_id
            parts[member.name] = Part(hashed.digest, hashed.size, diff_id)
        image = Archive(parts, documents, links).image(where, name)
        files = _laid_over(layers[each] for each in image.layers)
    except LayerRefused as refused:
        raise ImageError(f"{where}: cannot be read: {refused}", hint="write the archive again") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ImageError(f"{where}: not an image archive: {type(error).__name__} {error}") from None
    if expected is not None and expected not in image.digests:
        raise ImageError(
            f"{where}: what was read is not {expected}, but {image.config_digest}",
            hint="look for the image again",
        )
    return _kept_tree(files, image.config, keep, contents)


def _check_new(name: str, known: Collection[str]) -> None:
    if name in known:
        raise ValueError(f"{name} is listed more than once")


def _document(file: BufferedReader, name: str, others: Mapping[str, bytes]) -> bytes:
    left = min(DOCUMENT_LIMIT, MOST_DOCUMENTS - sum(map(len, others.values())))
    found = file.read(left + 1)
    if len(found) > left:
        raise ValueError(f"{name} is longer than the documents of an image are")
    return found


class _Hashed(RawIOBase):
    """A file whose bytes are hashed and counted as they are read."""

    def __init__(self, file: BufferedReader) -> None:
        self._file, self._hash, self.size = file, hashlib.sha256(), 0

    @property
    def digest(self) -> str:
        return "sha256:" + self._hash.hexdigest()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._hash.update(data)
        self.size += len(data)
        return len(data)


def layer_of(file: BufferedReader) -> IO[bytes] | None:
    """Return the tar of a file that is a layer, inflated; None for a file that is none, such as a JSON."""
    start = file.peek(512)[:512]
    if start.startswith(b"\x28\xb5\x2f\xfd"):
        inflate = zstandard.ZstdDecompressor()
        return cast("IO[bytes]", inflate.stream_reader(file, read_across_frames=True))
    if start.startswith(b"\x1f\x8b"):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=file))
    return file if start[257:262] == b"ustar" or (len(start) == 512 and not any(start)) else None


def read_layers(blobs: Iterable[Path], keep: Callable[[str], bool]) -> ImageTree:
    """Return the tree of some layers, the lowest first; ``keep`` says whose content is wanted too.

    Raises `ImageError` for a blob that is no layer.
    """
    contents: dict[str, bytes] = {}
    layers = []
    for blob in blobs:
        try:
            with blob.open("rb") as file:
                layers.append(_read_layer(layer_of(file), keep, contents))
        except LayerRefused as refused:
            raise ImageError(
                f"layer sha256:{blob.name[:12]}… cannot be used: {refused}", hint="use another base image"
            ) from None
    try:
        files = _laid_over(layers)
    except LayerRefused as refused:
        raise ImageError(
            f"the layers do not fit together: {refused}", hint="use another base image"
        ) from None
    return _kept_tree(files, {}, keep, contents)


def _kept_tree(
    files: Mapping[str, Record],
    config: Mapping[str, Any],
    keep: Callable[[str], bool],
    contents: Mapping[str, bytes],
) -> ImageTree:
    kept = {p: contents[r.content] for p, r in files.items() if r.content in contents and keep(p)}
    return ImageTree(files, config, kept)


def _read_layer(
    stream: IO[bytes] | None,
    keep: Callable[[str], bool],
    contents: dict[str, bytes],
    seen: Callable[[bytes], object] | None = None,
) -> _Layer:
    if stream is None:
        raise LayerRefused("it is not a layer of an image")
    layer = _Layer()
    reader = Reader(stream) if seen is None else Reader(stream, seen)
    for entry in reader:
        _read_entry(reader, entry, layer, keep, contents)
    return layer


def _read_entry(
    reader: Reader,
    entry: Entry,
    layer: _Layer,
    keep: Callable[[str], bool],
    contents: dict[str, bytes],
) -> None:
    path = entry.path
    folder, _, base = path.rpartition("/")
    owner, mode = f"{entry.uid}:{entry.gid}", entry.mode
    if not path:
        return  # the root itself, which builders do not carry over
    if base == _OPAQUE:
        layer.emptied.append(folder)
    elif base.startswith(_HIDES):
        layer.gone.append(posixpath.join(folder, base.removeprefix(_HIDES)))
    elif entry.kind == "hardlink":
        layer.links.append((path, entry.target))
    elif entry.kind == "file":
        digest, kept = _content(reader, entry, keep=keep(path))
        contents |= {digest: kept} if keep(path) else {}
        layer.entries[path] = Record(path, "file", mode, digest, owner)
    elif entry.kind == "dir":
        layer.entries[path] = Record(path, "dir", mode, "-", owner)
    elif entry.kind == "link":
        layer.entries[path] = Record(path, "link", 0o777, entry.target, owner)
    else:
        layer.entries[path] = Record(path, "other", mode, _what(entry), owner)


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


def _laid_over(layers: Iterable[_Layer]) -> Mapping[str, Record]:
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
