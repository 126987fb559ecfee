"""The record of layers that a registry keeps: ``envs/layers.json``, committed beside the locks. Pure.

It names each layer by the key of its inputs, and by the digest of its bytes, so that a registry can give them
without being trusted: what it gives counts only where its digest is the recorded one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from ..errors import LockError
from ..request.json_reader import load_json
from ..request.table import SHA256, JsonTable, Table, TableError, refused_as
from .base_image import MEDIA_TYPES, MOST_BYTES

MOST_LIST_BYTES = 256 << 20
"""Of the list of a layer's paths: a hundred bytes each, for more files than any package has."""

_VERSION = 1
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

    @classmethod
    def read(cls, key: str, table: Table) -> RecordedLayer:
        """Check the table of a layer. Raises `TableError`."""
        table.only(("diff_id", "digest", "media_type", "paths", "paths_size", "size", "title"))
        if not SHA256.fullmatch(key):
            raise TableError(f"{table.place}: the key is not 64 hexadecimal digits")
        return cls(
            key=key,
            title=table.text("title", lambda text: len(text) < 1000, "less than 1,000 characters"),
            diff_id=table.digest("diff_id"),
            digest=table.digest("digest"),
            size=table.size(most=MOST_BYTES),
            media_type=table.choice("media_type", sorted({*MEDIA_TYPES.values()})),
            paths=table.digest("paths"),
            paths_size=table.size("paths_size", MOST_LIST_BYTES),
        )


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
            table = load_json(data)
        except ValueError as error:
            raise LockError(f"{where}: not a record of layers: {error}", hint=_HINT) from None
        with refused_as(LockError, where, _HINT):
            top = JsonTable(table, known=("about", "images", "layers", "version"))
            version = top.value("version", int)
        with refused_as(LockError, where, _HINT if version == _VERSION else "use the reprobuild of the team"):
            if version != _VERSION:
                raise top.bad("version", f"{version} is not {_VERSION}")
            return cls._read(top)

    @classmethod
    def _read(cls, top: Table) -> LayerRecord:
        layers = {
            key: RecordedLayer.read(key, JsonTable(value, f"layers.{key[:12]}"))
            for key, value in top.value("layers", dict).items()
        }
        images, found = {}, top.table("images")
        for name in found.data:
            image = found.table(name, ("layers", "plan"))
            keys = image.texts("layers")
            if gone := [key for key in keys if key not in layers]:
                raise image.bad("layers", f"{gone[0]!r} is not in the record")
            images[name] = RecordedImage(plan=image.sha256("plan"), layers=tuple(keys))
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
