"""List the files in an image's archive as a container would see them, and compute a digest over them all.

Reads what ``docker save``, ``podman save``, an OCI archive or an OCI layout hold, as it goes by: layers with
any of the usual compressions, laid over each other by the rules of the image specification (layer.md).
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, cast

import zstandard

from ..errors import ImageError
from . import tar_reader
from .archive_manifest import Archive, Part, config_section
from .blobs import open_blob
from .documents import DOCUMENT_LIMIT
from .merge_layers import Keep, KeptContents, LayerFiles, laid_over, read_layer
from .overlay_layer import read_folders
from .stream import CHUNK, Hashed, Member, decompressed
from .tar_fields import LayerRefused
from .tar_reader import Readable
from .tar_writer import Kind, Record

_FILE: tuple[Kind, str] = ("file", hashlib.sha256().hexdigest())
_FOLDER: tuple[Kind, str] = ("dir", "-")
REPLACED: Mapping[str, tuple[Kind, str]] = {
    ".dockerenv": _FILE,
    "dev/console": _FILE,
    "dev/pts": _FOLDER,
    "dev/shm": _FOLDER,
    "etc/hostname": _FILE,
    "etc/hosts": _FILE,
    "etc/mtab": ("link", "/proc/mounts"),
    "etc/resolv.conf": _FILE,
    "proc": _FOLDER,
    "sys": _FOLDER,
    "dev": _FOLDER,
    "etc": _FOLDER,
}
"""What Docker puts into every container in place of the image's (moby, daemon/initlayer), by path: type and
content; folders after what is in them. A folder that the image has stays as it is."""

MOST_DOCUMENTS = 64 << 20
"""Bytes of all JSON documents of an archive."""


@dataclass(frozen=True, slots=True)
class ImageTree:
    """The files of an image by path, without a leading slash, and ``config`` of its configuration."""

    files: Mapping[str, Record]
    config: Mapping[str, Any]
    kept: Mapping[str, bytes] = field(default_factory=dict)
    """Content of the files that the reader keeps, by path."""
    replaced: bool = False
    """Whether these are the files of a container, in which the paths of `REPLACED` are not the image's own,
    and of extended attributes only file capabilities are there."""
    digests: tuple[str, str] = ("", "")
    """Of the image's manifest and of its configuration, where an archive or a layout tells them."""
    untold: tuple[str, ...] = ()
    """Names of settings that the engine does not report, so that ``config`` lacks them."""

    @property
    def unknown(self) -> frozenset[str]:
        """Paths whose content in the image is unknown."""
        return frozenset(REPLACED.keys() - self.files.keys() if self.replaced else ())

    @property
    def digest(self) -> str:
        """``sha256:…`` over path, type, mode, owner, content and capabilities of every file.

        No time stamp is in it, and no path of `REPLACED`: it is the same whichever way the image was read.
        """
        return tree_digest(
            replace(record, attributes=capability(record)) if record.attributes else record
            for path, record in self.files.items()
            if path not in REPLACED
        )


def capability(record: Record) -> str:
    """Return a file's capabilities from its attributes; empty for none."""
    return "\n".join(y for y in record.attributes.split("\n") if y.startswith("security.capability="))


def tree_digest(records: Iterable[Record]) -> str:
    """Return the digest of an image with these paths, in any order; `in_image/debian_root.py` has it too."""
    content = hashlib.sha256()
    for record in sorted(records, key=lambda record: record.path):
        line = [record.path, record.kind, f"{record.mode:o}", record.owner, record.content]
        line += [record.attributes] * bool(record.attributes)
        content.update("\0".join(line).encode("utf-8", "surrogateescape") + b"\0\n")
    return "sha256:" + content.hexdigest()


def nothing(_path: str, _size: int) -> bool:
    """Store no content."""
    return False


def read_tree(
    members: Iterable[Member],
    where: str,
    name: str | None = None,
    *,
    keep: Keep = nothing,
) -> ImageTree:
    """Return the tree of an archive's only image, or of the named one, verified against its digests.

    ``keep`` says by its path whether a file's content is wanted too; such files have a few megabytes.
    Raises `ImageError` that names ``where`` when there is none, or none that can be read.
    """
    documents: dict[str, bytes] = {}
    parts: dict[str, Part] = {}
    layers: dict[str, LayerFiles] = {}
    links: dict[str, str] = {}
    contents = KeptContents()
    try:
        for member in members:
            _check_new(member.name, parts)
            _check_new(member.name, links)
            if member.file is None:
                links[member.name] = member.target
                continue
            hashed = Hashed(member.file)
            file, tar = cast("BufferedReader", BufferedReader(hashed, CHUNK)), hashlib.sha256()
            diff_id = ""
            if (stream := layer_of(file)) is not None:
                # What is not compressed is hashed once, for both digests.
                seen = tar.update if stream is not file else None
                layers[member.name] = read_layer(stream, keep, contents, seen)
                diff_id = f"sha256:{tar.hexdigest()}" if seen else "its own"
            elif file.peek(1)[:1] in (b"{", b"["):
                documents[member.name] = _document(file, member.name, documents)
            while file.read(CHUNK):
                pass  # what follows the layer is in its digest too
            diff_id = hashed.digest if diff_id == "its own" else diff_id
            parts[member.name] = Part(hashed.digest, hashed.size, diff_id)
        image = Archive(parts, documents, links).image(where, name)
        files = laid_over(layers[each] for each in image.layers)
    except LayerRefused as refused:
        raise ImageError(f"{where}: cannot be read: {refused}", hint="write the archive again") from None
    except ValueError as error:
        raise ImageError(f"{where}: not an image archive: {error}") from None
    tree = _kept_tree(files, image.config, keep, contents)
    return replace(tree, digests=(image.manifest_digest, image.config_digest))


def read_root(
    tar: Readable, where: str, config: Any, *, keep: Keep = nothing, replaced: bool = False
) -> ImageTree:
    """Return the tree of a root that comes as one tar, as ``docker export`` writes it.

    ``config`` is what the engine says of how programs are run. ``replaced``: the tar has what Docker puts
    into a container; that is left out, and nothing else is. Raises `ImageError` that names ``where``.
    """
    contents = KeptContents()
    try:
        section = config_section(config)
        files = laid_over([read_layer(tar, keep, contents, flat=True)])
    except LayerRefused as refused:
        raise ImageError(
            f"{where}: cannot be read: {refused}", hint="build or pull the image again"
        ) from None
    except (ValueError, TypeError) as error:
        raise ImageError(f"{where}: its configuration cannot be read: {error}") from None
    if replaced:
        for path, its in REPLACED.items():
            found = files.get(path)
            if found is None or (found.kind, found.content) != its:
                continue
            # A file is never the image's: Docker takes that away first. Its mode is of the daemon's umask.
            if found.kind != "dir" or (found.mode == 0o755 and not _has_more(path, files)):
                del files[path]
    return _kept_tree(files, section, keep, contents, replaced=replaced)


def read_overlay(folders: Sequence[Path], config: Any, *, keep: Keep = nothing) -> ImageTree:
    """Return the tree of unpacked overlayfs layers on this disk, the lowest first.

    ``config`` is what the engine says of how programs are run. Raises `LayerRefused`, ValueError, TypeError
    and OSError for what cannot be read in this way, and perhaps can in another.
    """
    contents = KeptContents()
    section = config_section(config)
    return _kept_tree(laid_over(read_folders(folders, keep, contents)), section, keep, contents)


def _check_new(name: str, known: Collection[str]) -> None:
    if name in known:
        raise ValueError(f"{name} is listed more than once")


def _document(file: BufferedReader, name: str, others: Mapping[str, bytes]) -> bytes:
    left = min(DOCUMENT_LIMIT, MOST_DOCUMENTS - sum(map(len, others.values())))
    found = file.read(left + 1)
    if len(found) > left:
        raise ValueError(f"{name} is longer than the documents of an image are")
    return found


def layer_of(file: BufferedReader) -> IO[bytes] | None:
    """Return the decompressed tar of a layer; None for any other file, such as JSON."""
    if (tar := decompressed(file)) is not None:
        return tar
    start = file.peek(512)[:512]
    return file if start[257:262] == b"ustar" or (len(start) == 512 and not any(start)) else None


def tar_digest(blob: Path) -> str:
    """Return ``sha256:…`` of the tar in an untrusted layer; empty for what is not one, or is too large."""
    digest, size = hashlib.sha256(), 0
    try:
        with open_blob(blob) as file:
            tar = layer_of(file)
            while data := b"" if tar is None else tar.read(CHUNK):
                if (size := size + len(data)) > tar_reader.MOST_BYTES:
                    return ""
                digest.update(data)
    except (zlib.error, zstandard.ZstdError, EOFError, gzip.BadGzipFile):
        tar = None
    return "" if tar is None else f"sha256:{digest.hexdigest()}"


def read_layers(blobs: Iterable[Path], keep: Keep) -> ImageTree:
    """Return the tree of some layers, the lowest first; ``keep`` says whose content is wanted too.

    What `layers.unpack` refuses is refused here too. Raises `ImageError` for a blob that is no layer.
    """
    contents = KeptContents()
    layers: list[LayerFiles] = []
    for blob in blobs:
        try:
            with open_blob(blob) as file:
                layers.append(read_layer(layer_of(file), keep, contents))
            layers[-1].check_links()
        except LayerRefused as refused:
            raise ImageError(
                f"layer sha256:{blob.name[:12]}… cannot be used: {refused}", hint="use another base image"
            ) from None
    try:
        files = laid_over(layers)
    except LayerRefused as refused:
        raise ImageError(
            f"the layers do not fit together: {refused}", hint="use another base image"
        ) from None
    return _kept_tree(files, {}, keep, contents)


def _has_more(folder: str, files: Collection[str]) -> bool:
    return any(path.startswith(f"{folder}/") for path in files)


def _kept_tree(
    files: Mapping[str, Record],
    config: Mapping[str, Any],
    keep: Keep,
    contents: Mapping[str, bytes],
    *,
    replaced: bool = False,
) -> ImageTree:
    kept = {
        path: content
        for path, record in files.items()
        if (content := contents.get(record.content)) is not None and keep(path, len(content))
    }
    return ImageTree(files, config, kept, replaced)
