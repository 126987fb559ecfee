"""lock → the layers of its image, lowest first, each with the key under which it is cached. Pure.

Debian; the environment; CUDA's libraries; triton; torch; the other packages; reprobuild's own files come on
top, and need no key. A layer is a function of what its key names, so all images share it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..determinism import SITE_PREFIX
from ..lockfile import DebianPackage, Lock, PythonPackage
from .tar import FORMAT
from .wheel import Place

MOST_WHEEL_LAYERS = 90
"""containerd takes 127 layers; a derived image needs some of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerPlan:
    """A layer to be."""

    kind: Literal["debian", "environment", "wheels"]
    title: str
    packages: tuple[PythonPackage, ...] = ()
    key: str


def plan(lock: Lock) -> tuple[LayerPlan, ...]:
    """Return the layers below reprobuild's own, lowest first."""
    interpreter = [_name(p) for p in lock.debian if f"python{lock.request.python}" in p.name]
    layers = [
        LayerPlan(
            kind="debian",
            title=f"Debian {lock.request.suite}, {len(lock.debian)} packages",
            key=_key("debian", lock.request.suite, lock.platform, [_name(p) for p in lock.debian]),
        ),
        LayerPlan(
            kind="environment",
            title=f"{SITE_PREFIX} for Python {lock.request.python}",
            key=_key("environment", SITE_PREFIX, lock.platform, interpreter),
        ),
    ]
    # pip decides how scripts read, and the interpreter what the bytecode is.
    common = [SITE_PREFIX, interpreter, lock.version_of("pip")]
    for group in _groups(lock.python):
        names = [[p.name, p.wheel.filename, p.wheel.sha256] for p in group]
        title = ", ".join(f"{p.name} {p.version}" for p in group[:3]) + (", …" if len(group) > 3 else "")
        layers.append(
            LayerPlan(kind="wheels", title=title, packages=group, key=_key("wheels", common, names))
        )
    return tuple(layers)


def place(lock: Lock) -> Place:
    """Return where the image keeps its Python packages."""
    return Place(prefix=SITE_PREFIX.lstrip("/"), python=lock.request.python)


def with_losers(layer: LayerPlan, lost: Sequence[str]) -> LayerPlan:
    """Return the plan of a layer which leaves some paths to a layer of another package."""
    if not lost:
        return layer
    return LayerPlan(
        kind=layer.kind, title=layer.title, packages=layer.packages, key=_key(layer.key, sorted(lost))
    )


def _groups(packages: Sequence[PythonPackage]) -> list[tuple[PythonPackage, ...]]:
    """A layer for each package; beyond the limit the smallest share some, each in one that its name picks."""
    ordered = sorted(packages, key=lambda p: (_rank(p.name), p.name))
    if len(ordered) <= MOST_WHEEL_LAYERS:
        return [(p,) for p in ordered]
    shared = 16
    by_size = sorted(ordered, key=lambda p: (-p.wheel.size, p.name))
    alone = {p.name for p in by_size[: MOST_WHEEL_LAYERS - shared]}
    buckets: dict[int, list[PythonPackage]] = {}
    for package in ordered:
        if package.name not in alone:
            buckets.setdefault(hashlib.sha256(package.name.encode()).digest()[0] % shared, []).append(package)
    return [(p,) for p in ordered if p.name in alone] + [tuple(buckets[n]) for n in sorted(buckets)]


def _rank(name: str) -> int:
    if name.startswith(("nvidia-", "cuda-")):
        return 0
    return {"triton": 1, "torch": 2}.get(name, 3)


def _name(package: DebianPackage) -> list[str]:
    return [package.name, package.version, package.sha256]


def _key(*parts: Any) -> str:
    return hashlib.sha256(json.dumps([FORMAT, *parts]).encode()).hexdigest()
