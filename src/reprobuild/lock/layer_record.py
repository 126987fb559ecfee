"""The record of layers that a registry keeps: ``envs/layers.json``, committed beside the locks. Pure.

It names each layer by the key of its inputs, and by the digest of its bytes, so that a registry can give them
without being trusted: what it gives counts only where its digest is the recorded one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from ..errors import LockError
from .base_image import MEDIA_TYPES, MOST_BYTES

T = TypeVar("T")

MOST_LIST_BYTES = 256 << 20
"""Of the list of a layer's paths: a hundred bytes each, for more files than any package has."""

_VERSION = 1
_SHA256 = re.compile(r"[0-9a-f]{64}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_ABOUT = "Layers that a registry has, for `reprobuild image --layers-from`; `push --record-layers` writes it."
_HINT = "restore it from version control, or write it anew with `reprobuild push --record-layers`"


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedLayer:
    """A layer, and the list of its paths, as blobs of a registry."""

    key: str
    """The hash of its inputs; see `layers.plan`."""
    title: str
    diff_id: str
    """``sha256:…`` of the tar."""
    digest: str
    """``sha256:…`` of the compressed blob."""
    size: int
    media_type: str
    paths: str
    """``sha256:…`` of the list of its paths."""
    paths_size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedImage:
    """The layers of one lock, for one platform."""

    plan: str
    """The hash of the keys that its lock alone decides."""
    layers: tuple[str, ...]
    """The keys of its layers, lowest first; that of a package whose files others replace is another one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerRecord:
    """What `envs/layers.json` says."""

    images: Mapping[str, RecordedImage]
    """By the request's name and the platform."""
    layers: Mapping[str, RecordedLayer]
    """By key."""

    @classmethod
    def parse(cls, data: bytes, where: str) -> LayerRecord:
        """Read a record. Raises `LockError` that begins with ``where`` and the place in the file."""
        try:
            table = json.loads(data, object_pairs_hook=_once)
        except (ValueError, RecursionError) as error:
            raise LockError(f"{where}: not a record of layers: {error}", hint=_HINT) from None
        top = _Fields(table, where, {"about", "images", "layers", "version"})
        if top.get("version", int) != _VERSION:
            raise LockError(
                f"{where}: version: {table['version']} is not {_VERSION}",
                hint="use the reprobuild of the team",
            )
        layers = {
            key: _layer(key, value, f"{where}: layers.{key[:12]}")
            for key, value in top.get("layers", dict).items()
        }
        images = {}
        for name, value in top.get("images", dict).items():
            fields = _Fields(value, f"{where}: images.{name}", {"layers", "plan"})
            keys = fields.get("layers", list, lambda found: all(isinstance(k, str) for k in found))
            if gone := [key for key in keys if key not in layers]:
                raise LockError(f"{fields.where}: layers: {gone[0]!r} is not in the record", hint=_HINT)
            images[name] = RecordedImage(plan=fields.get("plan", str, _SHA256.fullmatch), layers=tuple(keys))
        return cls(images=images, layers=layers)

    def dump(self) -> bytes:
        """Return its one canonical text."""
        layers = {}
        for key, layer in self.layers.items():
            layers[key] = {name: value for name, value in asdict(layer).items() if name != "key"}
        images = {name: asdict(image) for name, image in self.images.items()}
        table = {"about": _ABOUT, "images": images, "layers": layers, "version": _VERSION}
        return (json.dumps(table, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()

    def keys_of(self, plan: str) -> tuple[str, ...] | None:
        """Return the keys of the layers of the lock with a plan; None where it is not recorded."""
        return next((image.layers for image in self.images.values() if image.plan == plan), None)

    def with_image(self, name: str, plan: str, layers: Sequence[RecordedLayer]) -> LayerRecord:
        """Return the record with an image more, or moved; layers that none has any more are left out."""
        added = RecordedImage(plan=plan, layers=tuple(layer.key for layer in layers))
        images = {**self.images, name: added}
        known = {**self.layers, **{layer.key: layer for layer in layers}}
        used = {key for image in images.values() for key in image.layers}
        return LayerRecord(images=images, layers={key: known[key] for key in used})


class _Fields:
    """A table of the file, whose keys are all known."""

    def __init__(self, table: Any, where: str, names: set[str]) -> None:
        if not isinstance(table, dict):
            raise LockError(f"{where}: expected a table", hint=_HINT)
        if odd := sorted(table.keys() - names):
            raise LockError(f"{where}: {odd[0]}: unknown key", hint=_HINT)
        self.table, self.where = table, where

    def get(self, name: str, kind: type[T], fits: Callable[[T], object] = lambda _: True) -> T:
        value = self.table.get(name)
        if type(value) is not kind or not fits(value):
            raise LockError(f"{self.where}: {name}: {str(value)[:80]!r} is not valid", hint=_HINT)
        return value


def _layer(key: str, table: Any, where: str) -> RecordedLayer:
    if not _SHA256.fullmatch(key):
        raise LockError(f"{where}: the key is not 64 hexadecimal digits", hint=_HINT)
    names = {"diff_id", "digest", "media_type", "paths", "paths_size", "size", "title"}
    fields = _Fields(table, where, names)
    return RecordedLayer(
        key=key,
        title=fields.get("title", str, lambda text: len(text) < 1000),
        diff_id=fields.get("diff_id", str, _DIGEST.fullmatch),
        digest=fields.get("digest", str, _DIGEST.fullmatch),
        size=fields.get("size", int, lambda size: 0 < size <= MOST_BYTES),
        media_type=fields.get("media_type", str, lambda kind: kind in MEDIA_TYPES.values()),
        paths=fields.get("paths", str, _DIGEST.fullmatch),
        paths_size=fields.get("paths_size", int, lambda size: 0 < size <= MOST_LIST_BYTES),
    )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is listed more than once")
    return found
