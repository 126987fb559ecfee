"""The files and settings of an image as `read_tree` gives them, without an image."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reprobuild.layers.image_documents import file_manifest
from reprobuild.lock.model import Lock
from reprobuild.oci.file_tree import ImageTree
from reprobuild.oci.tar_writer import Record
from reprobuild.render.image_config import image_config
from reprobuild.render.own_files import image_files
from support.locks import LOCK

SITE = "opt/venv/lib/python3.11/site-packages"
CUDA = f"{SITE}/nvidia/cuda_runtime/lib/libcudart.so.12"


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def image(
    *records: Record, env: Mapping[str, str | None] | None = None, lock: Lock = LOCK, **more: Any
) -> ImageTree:
    """An image as it was built, with some files and variables changed; a kind of ``other`` takes one away."""
    installed = [
        Record(f"{SITE}/torch", "dir", 0o755, "-"),
        Record(f"{SITE}/torch/a.py", "file", 0o644, "a"),
        Record(f"{SITE}/pip/b.py", "file", 0o644, "b"),
        Record("opt/venv/bin/pip3", "file", 0o755, "c"),
        Record(CUDA, "file", 0o644, "d"),
    ]
    own = [
        Record(path[1:], "file", mode, sha(content)) for path, (content, mode) in image_files(lock).items()
    ]
    files = {r.path: r for r in (*installed, *own, *records)}
    files = {path: record for path, record in files.items() if record.kind != "other"}
    config = image_config(lock)
    variables = {**config.env, **(env or {})}
    made = ImageTree(
        files,
        {
            "Env": [f"{n}={v}" for n, v in variables.items() if v is not None],
            "Labels": dict(config.labels),
            "platform": lock.platform,
        },
        {
            "opt/reprobuild/manifest.tsv": file_manifest(installed),
            "opt/reprobuild/pylock.toml": lock.dump().encode(),
        },
    )
    return replace(made, **more)
