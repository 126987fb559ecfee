"""Flatten the layers of an image to one plain tar of its root, for tools that cannot read layers."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from .blobs import damaged, open_blob, refuse_damaged
from .file_tree import layer_of, nothing
from .merge_layers import KeptContents, LayerFiles, laid_over, read_layer
from .tar_fields import LayerRefused
from .tar_header import header
from .tar_reader import Entry, Reader
from .tar_writer import MTIME, Record, parents

Write = Callable[[bytes], object]


def write_root(
    blobs: Sequence[tuple[Path, str]], write: Write, instead: Mapping[str, tuple[int, bytes]]
) -> None:
    """Write the root that layers make, each with its ``diff_id``, the lowest first; time stamps are all one.

    Folders and links come first, by path, then files in the order of the layers. ``instead``: mode and
    content of files, by path, that count for more than the layers'. Raises `LayerRefused`, and `ImageError`
    for a layer that is missing or damaged.
    """
    layers = [_read(blob, diff_id) for blob, diff_id in blobs]
    files = laid_over(layers)
    for path in instead:
        _check_place(path, files)
    for path in sorted({*files, *parents(instead)} - instead.keys()):
        _write_plain(files.get(path) or Record(path, "dir", 0o755, "-"), write)
    for path, (mode, content) in sorted(instead.items()):
        _write_file(Record(path, "file", mode, ""), len(content), [content], write)
    last = {path: n for n, layer in enumerate(layers) for path in (*layer.entries, *layer.links)}
    done: dict[Record, str] = {}
    for number, (blob, _) in enumerate(blobs):
        wanted = {path: files[path] for path in files if last.get(path) == number and path not in instead}
        _write_layer(blob, wanted, done, write)
    write(bytes(2 * tarfile.BLOCKSIZE))


def _write_layer(blob: Path, wanted: Mapping[str, Record], done: dict[Record, str], write: Write) -> None:
    """Write the regular files that come from a layer. ``done``: which is there already, but for its path."""
    with _opened(blob) as reader:
        for entry in reader:
            record = wanted.get(entry.path)
            if record is None or record.kind != "file" or entry.kind not in ("file", "hardlink"):
                continue
            key = _without_path(record)
            if entry.kind == "file":
                _write_file(record, entry.size, reader.content(), write)
                done[key] = record.path
            elif key in done:
                write(_header(record, tarfile.LNKTYPE, target=done[key]))
            else:
                content = _content(blob, entry, record)
                _write_file(record, len(content), [content], write)


def _read(blob: Path, diff_id: str) -> LayerFiles:
    seen = hashlib.sha256()
    try:
        with open_blob(blob) as file:
            layer = read_layer(layer_of(file), nothing, KeptContents(), seen.update)
    except FileNotFoundError:
        raise damaged(f"sha256:{blob.name}", "it is missing") from None
    except LayerRefused as refused:
        refuse_damaged(blob)
        raise damaged(f"sha256:{blob.name}", str(refused)) from None
    if f"sha256:{seen.hexdigest()}" != diff_id:
        refuse_damaged(blob)
        raise damaged(f"sha256:{blob.name}", "it is not the layer that the configuration names")
    return layer


@contextmanager
def _opened(blob: Path) -> Iterator[Reader]:
    with open_blob(blob) as file:
        stream = layer_of(file)
        if stream is None:
            raise LayerRefused("it is not a layer of an image")
        yield Reader(stream)


def _content(blob: Path, entry: Entry, record: Record) -> bytes:
    """Return the content of a second name whose first has been replaced by a layer above."""
    kept = KeptContents()
    with open_blob(blob) as file:
        read_layer(layer_of(file), lambda path, _: path == entry.target, kept)
    if record.content not in kept:
        raise LayerRefused(f"{entry.path!r} is a second name of {entry.target!r}, of a layer below")
    return kept[record.content]


def _check_place(path: str, files: Mapping[str, Record]) -> None:
    if path in files and files[path].kind == "dir":
        raise LayerRefused(f"{path!r} is a folder, where a file goes")
    for above in parents([path]):
        if above in files and files[above].kind != "dir":
            raise LayerRefused(f"{above!r} is not a folder, and /{path} goes into it")


def _write_plain(record: Record, write: Write) -> None:
    """Write an entry that is not a regular file."""
    match record.kind:
        case "dir":
            write(_header(record, tarfile.DIRTYPE))
        case "link":
            write(_header(record, tarfile.SYMTYPE, target=record.content))
        case "other":
            # Device nodes are left to the runtime, which mounts its own.
            if record.content.startswith("6 "):
                write(_header(record, tarfile.FIFOTYPE))
        case "file":
            pass


def _write_file(record: Record, size: int, chunks: Iterator[bytes] | Sequence[bytes], write: Write) -> None:
    write(_header(record, tarfile.REGTYPE, size=size))
    for chunk in chunks:
        write(chunk)
    write(bytes(-size % tarfile.BLOCKSIZE))


def _header(record: Record, kind: bytes, *, size: int = 0, target: str = "") -> bytes:
    uid, _, gid = record.owner.partition(":")
    lines = (line.partition("=") for line in record.attributes.split("\n") if line)
    return header(
        record.path + "/" * (kind == tarfile.DIRTYPE),
        kind,
        record.mode,
        MTIME,
        size=size,
        target=target,
        uid=int(uid),
        gid=int(gid),
        attributes={name: bytes.fromhex(value) for name, _, value in lines},
    )


def _without_path(record: Record) -> Record:
    return Record("", record.kind, record.mode, record.content, record.owner, record.attributes)
