"""An image's archive → every file of the image as a container would see it, and the digest over them all.

Reads what ``docker save``, ``podman save``, an OCI archive or an OCI layout hold, as it goes by: layers with
any of the usual compressions, laid over each other by the rules of the image specification (layer.md).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, cast

import zstandard

from ..errors import ImageError
from .store import NAME
from .stream import Member
from .tar_fields import LayerRefused
from .tar_reader import Entry, Reader
from .tar_writer import Record

_HIDES, _OPAQUE = ".wh.", ".wh..wh..opq"
MOST_KEPT = 64 << 20
"""Bytes of a file whose content is looked at; a Python with all its modules built in has about 30 MB."""
_DOCUMENT = 64 << 20
"""No JSON of an image is longer; a layer that starts with a brace is none either."""


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
    members: Iterable[Member], where: str, name: str | None = None, *, keep: Callable[[str], bool] = _nothing
) -> ImageTree:
    """Return the tree of the one image of an archive, or of that with a name.

    ``keep`` says by its path whether a file's content is wanted too; such files have a few megabytes.
    Raises `ImageError` that names ``where`` when there is none, or none that can be read.
    """
    documents: dict[str, Any] = {}
    layers: dict[str, _Layer] = {}
    links: dict[str, str] = {}
    contents: dict[str, bytes] = {}
    try:
        for member in members:
            if member.file is None:
                links[member.name] = posixpath.normpath(
                    posixpath.join(posixpath.dirname(member.name), member.target)
                )
                continue
            if (stream := layer_of(member.file)) is not None:
                layers[member.name] = _read_layer(stream, keep, contents)
            elif member.file.peek(1)[:1] in (b"{", b"["):
                documents[member.name] = json.loads(member.file.read(_DOCUMENT))
        config, names = _choose(documents, where, name)
        order = [layers[links.get(each, each)] for each in names]
        section = documents[links.get(config, config)].get("config") or {}
    except LayerRefused as refused:
        raise ImageError(
            f"{where}: a layer cannot be read: {refused}", hint="write the archive again"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ImageError(f"{where}: not an image archive: {type(error).__name__} {error}") from None
    return _kept_tree(_laid_over(order), section, keep, contents)


def _choose(documents: Mapping[str, Any], where: str, name: str | None) -> tuple[str, list[str]]:
    """Return the names of the configuration's file and of the layers' files, lowest first."""
    found: list[tuple[list[str], str, list[str]]] = []
    if "manifest.json" in documents:
        found = [(e.get("RepoTags") or [], e["Config"], e["Layers"]) for e in documents["manifest.json"]]
    elif "index.json" in documents:
        for entry in _entries(documents, documents["index.json"]["manifests"]):
            manifest = documents[_blob(entry["digest"])]
            names = [(entry.get("annotations") or {}).get(NAME, ""), entry["digest"]]
            blobs = [_blob(layer["digest"]) for layer in manifest["layers"]]
            found.append((names, _blob(manifest["config"]["digest"]), blobs))
    wanted = [each for each in found if name is None or name in each[0]]
    if len({(config, *layers) for _, config, layers in wanted}) != 1:
        names = sorted({n for each in found for n in each[0] if n})
        raise ImageError(
            f"{where} holds {len(wanted)} images{f' called {name}' if name else ''}, not one",
            hint=f"it has: {', '.join(names) or 'none'}; name one behind a #, as in archive.tar#NAME",
        )
    return wanted[0][1], wanted[0][2]


def _entries(
    documents: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Give the manifests of an index, those of indexes inside it too, without attestations."""
    for entry in entries:
        document = documents[_blob(entry["digest"])]
        if "manifests" in document:
            yield from _entries(documents, document["manifests"])
        elif (entry.get("platform") or {}).get("os") != "unknown":
            yield entry


def _blob(digest: str) -> str:
    return "blobs/" + digest.replace(":", "/")


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
    except KeyError as error:
        raise ImageError(f"a layer has a second name of {error}, which is not there") from None
    return _kept_tree(files, {}, keep, contents)


def _kept_tree(
    files: Mapping[str, Record],
    config: Mapping[str, Any],
    keep: Callable[[str], bool],
    contents: Mapping[str, bytes],
) -> ImageTree:
    kept = {p: contents[r.content] for p, r in files.items() if r.content in contents and keep(p)}
    return ImageTree(files, config, kept)


def _read_layer(stream: IO[bytes] | None, keep: Callable[[str], bool], contents: dict[str, bytes]) -> _Layer:
    if stream is None:
        raise LayerRefused("it is not a layer of an image")
    layer = _Layer()
    reader = Reader(stream)
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
