"""Extract one file of an image, from its uppermost layer or from a tar of that file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from .blobs import open_blob
from .file_tree import layer_of
from .merge_layers import KeptContents, LayerFiles, read_layer
from .tar_fields import LayerRefused
from .tar_reader import Readable


def file_of_layers(blobs: Iterable[Path], path: str) -> bytes | None:
    """Return the content of a file by its path without a leading slash; None if it does not exist.

    Each blob is named by its hash, and the uppermost is the first. Raises `LayerRefused` for one that has
    other bytes, or is no layer, and `OSError`.
    """
    for blob in blobs:
        contents = KeptContents()
        with open_blob(blob) as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != blob.name:
                raise LayerRefused(f"sha256:{blob.name}: its content has another hash")
            file.seek(0)
            layer = read_layer(layer_of(file), lambda each, _: each == path, contents)
        if (found := layer.entries.get(path)) is not None:
            return contents.get(found.content) if found.kind == "file" else None
        if _hides(layer, path):
            return None
    return None


def file_of_tar(tar: Readable, name: str) -> bytes | None:
    """Return the content of the file of a tar that has it alone, as engines copy one; None for anything else.

    Raises `LayerRefused`.
    """
    contents = KeptContents()
    found = read_layer(tar, lambda each, _: each == name, contents, flat=True).entries.get(name)
    return contents.get(found.content) if found is not None and found.kind == "file" else None


def _hides(layer: LayerFiles, path: str) -> bool:
    """Whether a layer hides a path of those below."""
    if path in layer.gone or path in layer.links:
        return True
    folder = path.rpartition("/")[0]
    while folder:
        its = layer.entries.get(folder)
        if folder in layer.gone or folder in layer.emptied or (its is not None and its.kind != "dir"):
            return True
        folder = folder.rpartition("/")[0]
    return False
