"""The lock: a PEP 751 file (``pylock.NAME.toml``); all but the packages is in its ``[tool.reprobuild]``.

Pure data: dump and digest; `reader` reads it. The dump is canonical, so the same lock is the same bytes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import tomli_w

from ..errors import LockError
from ..request.image_layout import SITE_PREFIX
from ..request.model import Request
from .base_image import BaseImage, BaseLayer
from .own_files import OwnFiles
from .packages import BuildFiles, CondaPackage, DebianPackage, PythonPackage, SourceArchive, Wheel
from .standalone_python import PREFIX, StandalonePython

FORMAT = 1
"""The version of ``[tool.reprobuild]``; a lock of another is refused."""

_CONDA_STACK = {
    "python": re.compile("python"),
    "torch": re.compile("pytorch"),
    "numpy": re.compile("numpy"),
    "cuda": re.compile("cuda-cudart|cudatoolkit"),
    "cudnn": re.compile("libcudnn|cudnn"),
    "nccl": re.compile("nccl"),
}

MACHINES = {"linux/amd64": "x86_64", "linux/arm64": "aarch64"}
_STACK = {
    "cuda": re.compile(r"nvidia-cuda-runtime(-cu\d+)?"),
    "cudnn": re.compile(r"nvidia-cudnn(-cu\d+)?"),
    "nccl": re.compile(r"nvidia-nccl(-cu\d+)?"),
}

UNPACKED = 4
"""Bytes on disk of an image, as a multiple of the bytes that are downloaded: packed, unpacked, and layers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Artifact:
    """One locked file."""

    of: PythonPackage | CondaPackage | DebianPackage | BaseLayer | StandalonePython
    """What it is the file of."""
    filename: str
    address: str
    """A URL; of a Debian package ``ARCHIVE:PATH`` and of a base image's layer ``HOST/REPOSITORY@DIGEST``,
    since the host's settings say which server has those."""
    sha256: str
    size: int
    """Bytes."""


@dataclass(frozen=True, kw_only=True)  # without slots, for what is kept
class Lock:
    """All inputs of an image, made by `reader.parse_lock` or a resolve; the lists sort themselves."""

    request: Request
    platform: str
    """As in OCI: ``linux/amd64``."""
    epoch: int
    """Seconds since 1970 (UTC): the one time stamp in the image."""
    python: Sequence[PythonPackage]
    debian: Sequence[DebianPackage]
    variables: Mapping[str, str]
    conda: Sequence[CondaPackage] = ()
    gpu_targets: Sequence[str] = ()
    """The GPUs that torch has code for, as CUDA writes them (``sm_80``); empty where that is not known."""
    base: BaseImage | None = None
    """The base image, if the request names one; ``debian`` is installed on top of it."""
    standalone: StandalonePython | None = None
    """The standalone Python, unless Debian, conda or the base image provides Python."""
    build: BuildFiles = field(default_factory=BuildFiles)
    """What the packages with a `SourceArchive` are built with."""
    own_files: OwnFiles | None = None
    """reprobuild's; None in a lock from before they were recorded. In the digest, being in the image."""

    def __post_init__(self) -> None:
        """Sort the lists into canonical order."""
        set_ = object.__setattr__
        set_(self, "python", tuple(sorted(self.python, key=lambda p: p.name)))
        set_(self, "conda", tuple(sorted(self.conda, key=lambda p: p.name)))
        set_(self, "debian", tuple(sorted(self.debian, key=lambda p: (p.name, p.architecture))))
        set_(self, "gpu_targets", tuple(self.gpu_targets))
        set_(self, "variables", dict(sorted(self.variables.items())))

    def dump(self) -> str:
        """Return the canonical text, digest included."""
        table = self.table()
        table["tool"]["reprobuild"] = {"digest": self.digest} | table["tool"]["reprobuild"]
        return tomli_w.dumps(table)

    @cached_property
    def digest(self) -> str:
        """``sha256:…`` over the canonical text without the digest itself. Kept, being asked for often."""
        return "sha256:" + hashlib.sha256(tomli_w.dumps(self.table()).encode()).hexdigest()

    @property
    def suite(self) -> str:
        """The Debian release underneath, by code name; empty where the base image is another system."""
        return self.request.suite if self.base is None else self.base.suite

    @property
    def interpreter(self) -> str:
        """The absolute path in the image of the Python that the environment is made with."""
        if self.base is not None and self.base.python:
            return self.base.python
        prefix = PREFIX if self.standalone is not None else "/usr"
        return f"{SITE_PREFIX if self.conda else prefix}/bin/python{self.request.python}"

    @property
    def stack(self) -> Mapping[str, str]:
        """Versions by plain name: python, torch, numpy, and cuda, cudnn, nccl where they are locked."""
        found: dict[str, str] = {}
        for package in self.conda:
            found |= {
                name: package.version for name, form in _CONDA_STACK.items() if form.fullmatch(package.name)
            }
        found |= {p.name: p.version for p in self.python if p.name in ("torch", "numpy")}
        for wheel in self.python:
            found |= {name: wheel.version for name, form in _STACK.items() if form.fullmatch(wheel.name)}
        if self.base is not None and self.base.python_version and not self.conda:
            found["python"] = self.base.python_version
        if self.standalone is not None:
            found["python"] = self.standalone.version
        interpreter = f"python{self.request.python}"
        for deb in self.debian:
            if deb.name == interpreter and not self.conda and self.standalone is None:
                found["python"] = deb.version.rpartition(":")[2].partition("-")[0]
        return dict(sorted(found.items()))

    def version_of(self, package: str) -> str:
        """Return the locked version of a Python package; KeyError when it is not locked."""
        return self.distributions[package]

    @property
    def distributions(self) -> Mapping[str, str]:
        """Versions of all Python packages, as pip sees them, of wheels and of conda."""
        conda = {p.distribution: p.version for p in self.conda if p.is_python or p.name == "pip"}
        return dict(sorted((conda | {p.name: p.version for p in self.python}).items()))

    @property
    def artifacts(self) -> Iterator[Artifact]:
        """Every locked file: the base image's layers from the lowest, a standalone Python, conda packages,
        wheels or what they are built from, Debian's; last what only builds need."""
        for layer in () if self.base is None else self.base.layers:
            assert self.base is not None
            yield _artifact(layer, layer, f"layer {layer.digest[:19]}", f"{self.base.name}@{layer.digest}")
        if self.standalone is not None:
            yield _artifact(self.standalone, self.standalone, self.standalone.filename, self.standalone.url)
        for conda in self.conda:
            yield _artifact(conda, conda, conda.filename, conda.url)
        for python in self.python:
            yield _artifact(python, python.file, python.file.filename, python.file.url)
        for deb in self.debian:
            yield _artifact(deb, deb, deb.filename, f"{deb.archive}:{deb.path}")
        for python in self.build.python:
            yield _artifact(python, python.wheel, python.wheel.filename, python.wheel.url)
        for deb in self.build.debian:
            yield _artifact(deb, deb, deb.filename, f"{deb.archive}:{deb.path}")

    @property
    def size(self) -> int:
        """Bytes of all artifacts, each counted once."""
        return sum({artifact.sha256: artifact.size for artifact in self.artifacts}.values())

    def check_for(self, request: Request, where: str) -> None:
        """Raise `LockError` that names the keys in which ``request`` differs from the one locked."""
        lines = request.differences(self.request)
        if lines:
            raise LockError(
                f"{where} was made for a different request ({'; '.join(lines)})",
                hint="run `reprobuild lock` to update it",
            )

    @property
    def header(self) -> Mapping[str, Any]:
        """What PEP 751 wants at the top of the file; all of it follows from the rest."""
        return {
            "lock-version": "1.0",
            "environments": [f"sys_platform == 'linux' and {marker(self.platform)}"],
            "requires-python": f"=={self.request.python}.*",
            "created-by": "reprobuild",
        }

    def table(self) -> dict[str, Any]:
        """Return what `dump` writes, without the digest."""
        return {
            **self.header,
            "packages": [p.table() for p in self.python],
            "tool": {
                "reprobuild": {
                    "format": FORMAT,
                    "platform": self.platform,
                    "epoch": self.epoch,
                    "request-digest": self.request.digest,
                    "request": self.request.to_dict(),
                    "stack": dict(self.stack),
                    "variables": dict(self.variables),
                    **({"architectures": list(self.gpu_targets)} if self.gpu_targets else {}),
                    **({"own-files": self.own_files.to_dict()} if self.own_files is not None else {}),
                    **({"base": self.base.to_dict()} if self.base is not None else {}),
                    **({"standalone-python": self.standalone.to_dict()} if self.standalone else {}),
                    **({"conda": [p.table() for p in self.conda]} if self.conda else {}),
                    "debian": [p.table() for p in self.debian],
                    **({"build": build} if (build := self.build.table()) else {}),
                }
            },
        }


def _artifact(
    of: PythonPackage | CondaPackage | DebianPackage | BaseLayer | StandalonePython,
    file: Wheel | SourceArchive | CondaPackage | DebianPackage | BaseLayer | StandalonePython,
    filename: str,
    address: str,
) -> Artifact:
    return Artifact(of=of, filename=filename, address=address, sha256=file.sha256, size=file.size)


def marker(platform: str) -> str:
    """Return the PEP 508 marker of a platform's machine."""
    return f"platform_machine == '{MACHINES[platform]}'"
