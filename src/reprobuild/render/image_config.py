"""Configuration of a lock's image: variables, labels, command. Pure; the same for every engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from packaging.version import Version

from .. import __version__
from ..lock.model import Lock
from ..request.image_layout import OWN_FOLDER, SITE_PREFIX
from ..request.profiles import surroundings
from ..request.shipped import is_usual
from .labels import LABEL

_DRIVERS = {"11": "450.80.02", "12": "525.60.13", "13": "580.65.06"}
# Of https://docs.nvidia.com/deploy/cuda-compatibility/ ("minor version compatibility").


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageConfig:
    """The configuration of an image, without its layers."""

    env: Mapping[str, str]
    labels: Mapping[str, str]
    cmd: tuple[str, ...]
    workdir: str
    user: str
    """``USER:GROUP`` as numbers; empty: root."""


def image_config(lock: Lock) -> ImageConfig:
    """Return the configuration of the image of a lock; the same lock gives the same."""
    user = lock.request.user
    return ImageConfig(
        env=_env(lock),
        labels=_labels(lock),
        cmd=("python3",),
        workdir="/" if user is None else user.home,
        user="" if user is None else user.ids,
    )


def oldest_driver(cuda: str) -> str | None:
    """Return the oldest Linux driver that runs all of a CUDA version's major version; None: not known."""
    return _DRIVERS.get(cuda.split(".", maxsplit=1)[0])


def _env(lock: Lock) -> Mapping[str, str]:
    own = surroundings(conda=bool(lock.conda))
    under: Mapping[str, str] = {} if lock.base is None else lock.base.env
    path = {"PATH": f"{SITE_PREFIX}/bin:{under['PATH']}"} if under.get("PATH") else {}
    return dict(sorted({**under, **own, **path, **lock.variables}.items()))


def default_image_name(lock: Lock) -> str:
    """Return the usual name of a lock's image, such as ``reprobuild/torch:2.4.1-cu121-py311``.

    Any other request has its own name there: two stacks must not take the name from each other.
    """
    request = lock.request
    repository = "torch" if is_usual(request) else request.name
    flavour = "cpu" if request.cuda == "cpu" else "cu" + request.cuda.replace(".", "")
    # A tag may not hold the mark of an epoch.
    version = Version(lock.version_of("torch")).public.replace("!", "-")
    return f"reprobuild/{repository}:{version}-{flavour}-py{request.python.replace('.', '')}"


def _labels(lock: Lock) -> Mapping[str, str]:
    created = datetime.fromtimestamp(lock.epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    stack = lock.stack
    labels = {
        "org.opencontainers.image.created": created,
        "org.opencontainers.image.title": lock.request.name,
        "org.opencontainers.image.version": stack["torch"],
        "org.opencontainers.image.description": _description(stack),
        LABEL + "version": __version__,
        LABEL + "lock": lock.digest,
        # From this file in the image the very same image can be built again.
        LABEL + "source": f"{OWN_FOLDER}/pylock.toml",
        LABEL + "request": lock.request.digest,
        LABEL + "epoch": str(lock.epoch),
        LABEL + "profile": lock.request.profile,
    }
    if lock.own_files is not None:
        labels[LABEL + "own-files"] = lock.own_files.digest
    if lock.gpu_targets:
        labels[LABEL + "architectures"] = " ".join(lock.gpu_targets)
    if (driver := oldest_driver(lock.request.cuda)) is not None:
        labels[LABEL + "driver"] = driver
    labels |= {LABEL + "debian": lock.suite} if lock.suite else {}
    if named := [f"{p.name} @ {p.source.address}" for p in lock.python if p.source and p.source.address]:
        labels[LABEL + "sources"] = ", ".join(named)
    if lock.base is not None:
        labels["org.opencontainers.image.base.name"] = lock.base.image
        labels["org.opencontainers.image.base.digest"] = lock.base.manifests[lock.platform]
    return dict(sorted((labels | {LABEL + name: version for name, version in stack.items()}).items()))


def _description(stack: Mapping[str, str]) -> str:
    names = {"torch": "PyTorch", "cuda": "CUDA", "cudnn": "cuDNN", "nccl": "NCCL", "python": "Python"}
    return ", ".join(f"{title} {stack[name]}" for name, title in names.items() if name in stack)
