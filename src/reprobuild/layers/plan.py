"""Plan the layers of a lock's image, lowest first, each with its cache key. Pure.

The base image's, or Debian; a standalone Python; the environment; CUDA's libraries; triton; torch; the other
packages; reprobuild's own files come on top, and need no key. A layer is a function of what its key names, so
all images share it. A package of more than about 450 MB is several layers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, Literal, TypeVar

from .. import assets
from ..lock.base_image import BaseLayer
from ..lock.model import Lock
from ..lock.packages import CondaPackage, DebianPackage, PythonPackage
from ..oci.tar_writer import FORMAT
from ..request.image_layout import SITE_PREFIX
from .split_large import CONDA_PART_BYTES, PART_BYTES, parts_of
from .wheel import Place

MOST_WHEEL_LAYERS = 90
"""containerd takes 127 layers; a derived image needs some of them."""

MOST_CONDA_LAYERS = 50
"""The limit if there are conda packages."""

_LEAST_WHEEL_LAYERS = 20

_DEBIAN_FORMAT = 2
"""The number changes when what is written beside the Debian packages' own files changes (sources.list)."""

_STANDALONE_FORMAT = 1
"""The number changes when another part of a standalone Python's archive gets into its layer."""

P = TypeVar("P", PythonPackage, CondaPackage)


SYSTEM = ("base", "debian", "python")
"""Kinds of the layers below the environment, lowest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerPlan:
    """A planned layer."""

    kind: Literal["base", "debian", "python", "conda", "environment", "wheels"]
    title: str
    packages: tuple[PythonPackage, ...] = ()
    conda: tuple[CondaPackage, ...] = ()
    base: BaseLayer | None = None
    part: int = 0
    parts: int = 1
    """Of one package's files, which of so many parts; see `split_large.cut`."""
    key: str


def plan(lock: Lock) -> tuple[LayerPlan, ...]:
    """Return the layers below reprobuild's own, lowest first."""
    base = lock.base.layers if lock.base is not None else ()
    blobs = [[y.digest, y.diff_id, y.media_type] for y in base]
    debian = [lock.suite, [_debian(p) for p in lock.debian]]
    # Linked as a whole, since what one package puts where can depend on the others.
    linked = [version("py-rattler"), *map(_conda, lock.conda)] if lock.conda else []
    # A program of the image makes the environment and the bytecode: all that it runs in can change them.
    compiler = hashlib.sha256(assets.in_image("bytecode.py")).hexdigest()
    python = [SITE_PREFIX, lock.platform, lock.request.python, lock.interpreter]
    standalone = [lock.standalone.sha256, _STANDALONE_FORMAT] if lock.standalone is not None else []
    made = [python, compiler, blobs, debian, linked, *standalone]
    layers = [
        LayerPlan(
            kind="base",
            title=f"layer {n} of {lock.base.image if lock.base else ''}",
            base=layer,
            # All below it too: the list of its paths is that of the whole.
            key=_key("base", blobs[:n], len(base)),
        )
        for n, layer in enumerate(base, 1)
    ]
    if lock.debian or lock.base is None:
        layers.append(
            LayerPlan(
                kind="debian",
                title=f"Debian {lock.suite}, {len(lock.debian)} packages",
                key=_key("debian", _DEBIAN_FORMAT, lock.platform, blobs, debian),
            )
        )
    if lock.standalone is not None:
        title = f"Python {lock.standalone.version}, a standalone build"
        layers.append(LayerPlan(kind="python", title=title, key=_key("python", made)))
    most = MOST_WHEEL_LAYERS - MOST_CONDA_LAYERS if lock.conda else MOST_WHEEL_LAYERS
    most = max(most - len(base), _LEAST_WHEEL_LAYERS)
    for conda, parts in _groups(lock.conda, MOST_CONDA_LAYERS, lambda p: p.size, CONDA_PART_BYTES):
        title = _title([f"{p.name} {p.version}" for p in conda])
        key = _key("conda", SITE_PREFIX, lock.platform, linked, [p.name for p in conda])
        layers += _in_parts(LayerPlan(kind="conda", title=title, conda=conda, key=key), parts)
    layers.append(
        LayerPlan(
            kind="environment",
            title=f"{SITE_PREFIX} for Python {lock.request.python}",
            key=_key("environment", made),
        )
    )
    # pip's own source says how the scripts of entry points read.
    pip = [_wheel(p) for p in lock.python if p.name == "pip"]
    for group, parts in _groups(lock.python, most, lambda p: p.wheel.size, PART_BYTES):
        title = _title([f"{p.name} {p.version}" for p in group])
        first = [p.name for p in group if p.name in lock.request.file_priority]
        key = _key("wheels", made, pip, [_wheel(p) for p in group], *([first] if first else []))
        layers += _in_parts(LayerPlan(kind="wheels", title=title, packages=group, key=key), parts)
    return tuple(layers)


def _in_parts(layer: LayerPlan, parts: int) -> list[LayerPlan]:
    if parts == 1:
        return [layer]
    return [
        replace(
            layer,
            title=f"{layer.title}, part {part + 1} of {parts}",
            part=part,
            parts=parts,
            key=_key(layer.key, part, parts),
        )
        for part in range(parts)
    ]


def plan_digest(layers: Sequence[LayerPlan]) -> str:
    """Return the hash of all that decides the layers of a lock below reprobuild's own.

    The keys alone do not: where packages write the same path, what a layer loses depends on the others.
    """
    return _key("plan", *(layer.key for layer in layers))


def place(lock: Lock) -> Place:
    """Return where the image keeps its Python packages."""
    return Place(prefix=SITE_PREFIX.lstrip("/"), python=lock.request.python)


def with_losers(layer: LayerPlan, lost: Sequence[str]) -> LayerPlan:
    """Return the plan of a layer which leaves some paths to a layer of another package."""
    if not lost:
        return layer
    return replace(layer, key=_key(layer.key, sorted(lost)))


def _title(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _groups(
    packages: Sequence[P], most: int, size: Callable[[P], int], bound: int
) -> list[tuple[tuple[P, ...], int]]:
    """A layer for each package, or several; beyond the limit the smallest share some.

    A package beyond the ``bound`` is cut into parts, of which each has the second item. Of those that share,
    the name picks the layer. ``most`` is the limit of layers.
    """
    ordered = sorted(packages, key=lambda p: (_rank(p.name), p.name))
    parts = {p.name: parts_of(size(p), bound) for p in ordered}
    while sum(parts.values()) - len(parts) > most // 3:  # more than ten gigabytes: larger parts
        bound *= 2
        parts = {p.name: parts_of(size(p), bound) for p in ordered}
    most -= sum(parts.values()) - len(parts)
    if len(ordered) <= most:
        return [((p,), parts[p.name]) for p in ordered]
    shared = min(16, most // 2)
    by_size = sorted(ordered, key=lambda p: (-size(p), p.name))
    alone = {p.name for p in by_size[: most - shared]}
    buckets: dict[int, list[P]] = {}
    for package in ordered:
        if package.name not in alone:
            buckets.setdefault(hashlib.sha256(package.name.encode()).digest()[0] % shared, []).append(package)
    groups = [((p,), parts[p.name]) for p in ordered if p.name in alone]
    return groups + [(tuple(buckets[n]), 1) for n in sorted(buckets)]


def _rank(name: str) -> int:
    if name.startswith(("nvidia-", "cuda-")):
        return 0
    return {"triton": 1, "torch": 2, "libtorch": 2, "pytorch": 2}.get(name, 3)


def _debian(package: DebianPackage) -> list[str]:
    return [package.name, package.version, package.architecture, package.filename, package.sha256]


def _conda(package: CondaPackage) -> list[str]:
    # All of this stands in the package's file below conda-meta.
    return [package.name, package.version, package.build, package.subdir, package.url, package.sha256]


def _wheel(package: PythonPackage) -> list[str]:
    return [package.name, package.version, package.wheel.filename, package.wheel.sha256]


def _key(*parts: Any) -> str:
    return hashlib.sha256(json.dumps([FORMAT, *parts]).encode()).hexdigest()
