"""Compare an image with what its lock gives here, and say of each difference why, where the bytes show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..errors import ImageError
from ..host.home import storage_errors
from ..host.host import Host
from ..lock.base_image import MOST_BYTES
from ..oci.archive_manifest import config_section, with_platform
from ..oci.blobs import open_blob
from ..oci.documents import image_json
from ..oci.file_tree import ImageTree, layer_of, read_layers
from ..oci.merge_layers import Keep
from ..oci.store import ImageStore
from ..oci.tar_reader import Entry, Reader
from ..request.table import JsonTable, refused_as
from .causes import cause_of
from .compare import Difference, compare
from .find_evidence import Evidenced

_EXPLAINED = 50
"""Files whose content is looked at."""
_LARGEST = 4 << 20
"""Bytes of one of them; a shared library of torch has a thousand times as many."""


def compare_rebuilt(found: Evidenced, digest: str, images: ImageStore, host: Host) -> tuple[list[str], str]:
    """Return a line for each difference from the image that its lock gave here, and a summary.

    Layers of an image in a registry are downloaded where they are not those of the rebuilt one. Raises
    `ImageError`, `RegistryError`, `StorageError`.
    """
    with host.home.scratch("layers") as folder:
        blobs = _layers(found, images, folder, host)
        first, second = _tree(found, blobs, host), images.tree(digest, "the rebuilt image", lambda *_: False)
        differences = compare(first, second)
        if not differences:
            rebuilt = [blob for blob, _ in images.layers(digest)]
            return (
                [],
                f"identical files; the layers are made in another way: {why_layers_differ(blobs, rebuilt)}",
            )
        wanted = {each.path[1:] for each in differences if each.kind == "content"}
        wanted = set(sorted(wanted)[:_EXPLAINED])

        def keep(path: str, size: int) -> bool:
            return path in wanted and size <= _LARGEST

        one = _tree(found, blobs, host, keep).kept
        other = images.tree(digest, "the rebuilt image", keep).kept
    return [
        _explained(each, one.get(each.path[1:]), other.get(each.path[1:])) for each in differences
    ], "different"


def _explained(difference: Difference, first: bytes | None, second: bytes | None) -> str:
    cause = ""
    if difference.kind == "missing":
        cause = "added to the image" if difference.first else "removed from the image"
    elif difference.kind == "content" and first is not None and second is not None:
        cause = cause_of(difference.path, first, second)
    elif difference.kind == "content":
        most = f"above {_LARGEST >> 20} MiB, or beyond the first {_EXPLAINED}"
        cause = f"not looked at: not a file, {most}"
    return f"{difference} ({cause})" if cause else str(difference)


def _layers(found: Evidenced, images: ImageStore, folder: Path, host: Host) -> Sequence[Path]:
    """Return the layers of an image in a registry as files, the lowest first; none for another image."""
    if found.registry is None:
        return ()
    blobs = []
    manifest = image_json(found.registry.read_manifest(found.subject.manifest), found.name)
    with refused_as(ImageError, found.name), storage_errors(folder):
        for layer in JsonTable(manifest, "manifest").tables("layers"):
            digest, size = layer.digest("digest"), layer.size(most=MOST_BYTES)
            blob = images.blob(digest)
            if not blob.exists():
                blob = folder / digest[7:]
                host.console.step(f"downloading the layer {digest[:19]}, which the rebuilt image lacks")
                found.registry.save_blob(digest, size, blob)
            blobs.append(blob)
    return blobs


def _tree(found: Evidenced, blobs: Sequence[Path], host: Host, keep: Keep = lambda *_: False) -> ImageTree:
    if found.registry is None:
        return found.tree(host, keep)
    data = image_json(found.registry.read_blob(found.subject.config), found.name)
    with refused_as(ImageError, found.name):
        config = with_platform(config_section(data.get("config")), data, "os", "architecture")
    return replace(read_layers(blobs, keep), config=config)


def why_layers_differ(first: Sequence[Path], second: Sequence[Path]) -> str:
    """Return what differs in the first pair of layers that are not the same bytes."""
    if not first:
        return "time stamps, order, layering or compression"
    if len(first) != len(second):
        return f"{len(first)} layers, not {len(second)}"
    for one, other in zip(first, second, strict=True):
        if one.name != other.name:
            return _of_layer(_entries(one), _entries(other))
    return "the manifest or the configuration"


def _entries(blob: Path) -> list[Entry]:
    with open_blob(blob) as file:
        stream = layer_of(file)
        return [] if stream is None else list(Reader(stream))


def _of_layer(first: list[Entry], second: list[Entry]) -> str:
    if [each.path for each in first] != [each.path for each in second]:
        return "order of the paths in a layer"
    for one, other in zip(first, second, strict=True):
        if one.mtime != other.mtime:
            return f"time: /{one.path} is of {one.mtime}, not {other.mtime}"
    return "compression or headers of a layer"
