"""The documents of a locked image: its configuration and manifest, and the manifest of installed files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from ..in_image import manifest
from ..lock.model import Lock
from ..oci.documents import ImageDocuments, image_documents, time_text
from ..oci.tar_writer import Layer, Record
from ..render.image_config import ImageConfig
from ..render.own_files import MANIFEST_FOLDERS

_ROOTS = tuple(folder.removeprefix("/") for folder in MANIFEST_FOLDERS)
"""The folders whose files the manifest of installed files lists, as paths of layers."""

_INSIDE = tuple(f"{root}/" for root in _ROOTS)


def documents(lock: Lock, config: ImageConfig, layers: Sequence[tuple[str, Layer]]) -> ImageDocuments:
    """Return the documents of an image with these layers, each with its title, the lowest first."""
    created = time_text(datetime.fromtimestamp(lock.epoch, UTC))
    fields = {
        "architecture": lock.platform.partition("/")[2],
        "config": {
            "Cmd": list(config.cmd),
            "Env": [f"{key}={value}" for key, value in config.env.items()],
            "Labels": dict(config.labels),
            "WorkingDir": config.workdir,
            **({"User": config.user} if config.user else {}),
        },
        "created": created,
        "history": [{"created": created, "created_by": f"reprobuild: {title}"} for title, _ in layers],
        "os": "linux",
        "rootfs": {"diff_ids": [layer.diff_id for _, layer in layers], "type": "layers"},
    }
    return image_documents(fields, [layer for _, layer in layers], config.labels)


def file_manifest(records: Iterable[Record]) -> bytes:
    """Return the manifest of installed files, in the form of ``in_image/manifest.py``.

    Where layers name the same path, the last one given counts.
    """
    found = {f"/{r.path}": r for r in records if r.path in _ROOTS or r.path.startswith(_INSIDE)}
    lines = [manifest.written(r.kind, f"{r.mode:o}", r.content, path) for path, r in sorted(found.items())]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
