"""The lock: a PEP 751 file (``pylock.NAME.toml``); all but the packages is in its ``[tool.reprobuild]``.

Pure data: dump and digest; `reader` reads it. The dump is canonical, so the same lock is the same bytes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import tomli_w

from ..errors import LockError
from ..request.image_layout import SITE_PREFIX
from ..request.model import Request
from .base_image import BaseImage, BaseLayer
from .own_files import OwnFiles
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

SourceKind = Literal["sdist", "archive", "vcs", "directory"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wheel:
    """What is installed of a Python package on the lock's platform."""

    filename: str
    url: str
    """Without user name or password; those come from the user's settings when it is fetched. Empty where it
    is built from a `SourceArchive`."""
    sha256: str
    size: int
    """Bytes."""
    uploaded: datetime | None = None
    """When the index says it was published (UTC, whole seconds)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceArchive:
    """What a wheel is built from, where the package has none for the lock's platform."""

    kind: SourceKind = "sdist"
    """The key of the package's entry that has it, by PEP 751."""
    filename: str
    url: str
    """Without user name or password. Of ``directory`` the path of a folder, from that of the requests."""
    sha256: str
    size: int
    """Bytes."""
    uploaded: datetime | None = None
    """When the index says it was published (UTC, whole seconds)."""
    commit: str = ""
    """Of ``vcs``, which is git; then hash and size are those of its tree as an archive (`sources.tree`)."""
    ref: str = ""
    """The branch, tag or commit by which the request names it; empty: HEAD."""
    subdirectory: str = ""
    """Where the project is in it."""
    requires: tuple[str, ...] = ()
    """What is installed for the build, each as ``NAME==VERSION``, sorted: the wheels are in the lock's
    `BuildFiles`, else among its own packages."""

    @property
    def address(self) -> str:
        """How a request names it, a commit in the place of a branch; empty for ``sdist``."""
        below = f"#subdirectory={self.subdirectory}" if self.subdirectory else ""
        if self.kind == "sdist":
            return ""
        return (f"git+{self.url}@{self.commit}" if self.kind == "vcs" else self.url) + below


@dataclass(frozen=True, kw_only=True, slots=True)
class PythonPackage:
    """A distribution, by its normalised name."""

    name: str
    version: str
    wheel: Wheel
    source: SourceArchive | None = None
    """What its wheel is built from; None where the wheel itself is fetched."""

    @property
    def file(self) -> Wheel | SourceArchive:
        """What is fetched of it."""
        return self.source or self.wheel

    @property
    def pin(self) -> str:
        """``NAME==VERSION``"""
        return f"{self.name}=={self.version}"


@dataclass(frozen=True, kw_only=True, slots=True)
class DebianPackage:
    """A binary package. Where it is served is the host's setting, not the lock's."""

    name: str
    version: str
    architecture: str
    archive: str
    """Which of Debian's archives has it: ``debian`` or ``debian-security``."""
    path: str
    """Below the archive's root: ``pool/main/…/….deb``."""
    sha256: str
    size: int
    """Bytes."""

    @property
    def filename(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, kw_only=True, slots=True)
class CondaPackage:
    """A package of a conda channel."""

    name: str
    version: str
    build: str
    subdir: str
    """``linux-64``, ``linux-aarch64`` or ``noarch``."""
    url: str
    """Without user name or password."""
    sha256: str
    md5: str | None
    """For other tools only; nothing here trusts it."""
    size: int
    """Bytes."""
    depends: tuple[str, ...]
    """Match specs."""
    uploaded: datetime | None = None
    """When the package was built (UTC, whole seconds)."""
    constrains: tuple[str, ...] = ()
    """Match specs of what need not be there, but if it is, must fit."""

    @property
    def filename(self) -> str:
        """The last part of the address."""
        return self.url.rpartition("/")[2]

    @property
    def is_python(self) -> bool:
        """Whether it holds Python modules; then it is a distribution, as pip sees it."""
        return self.name != "pip" and any(spec.split(" ")[0] == "python" for spec in self.depends)

    @property
    def distribution(self) -> str:
        """What pip calls it; it is but for PyTorch the package's own name."""
        return _DISTRIBUTIONS.get(self.name, self.name)


_DISTRIBUTIONS = {"pytorch": "torch", "pytorch-cpu": "torch", "pytorch-gpu": "torch"}


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildFiles:
    """What source packages are built with and the image does not have. The lists sort themselves."""

    python: Sequence[PythonPackage] = ()
    """Several may be of one name, in different versions."""
    debian: Sequence[DebianPackage] = ()
    """Beside those of the image."""

    def __post_init__(self) -> None:
        """Bring the lists into their one order."""
        object.__setattr__(self, "python", tuple(sorted(self.python, key=lambda p: (p.name, p.version))))
        object.__setattr__(self, "debian", tuple(sorted(self.debian, key=lambda p: (p.name, p.architecture))))


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Lock:
    """All that goes into an image. Made by `reader.parse_lock` or a resolve; the lists sort themselves."""

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
    """The image underneath, where the request names one; ``debian`` then goes on top of it."""
    standalone: StandalonePython | None = None
    """Python, where it is not Debian's, conda's or the base's."""
    build: BuildFiles = BuildFiles()
    """What the packages with a `SourceArchive` are built with."""
    own_files: OwnFiles | None = None
    """reprobuild's; None in a lock from before they were recorded. In the digest, being in the image."""

    def __post_init__(self) -> None:
        """Bring the lists into their one order."""
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

    @property
    def digest(self) -> str:
        """``sha256:…`` over the canonical text without the digest itself."""
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
        """Every locked file: the base image's layers, lowest first, then a standalone Python, conda packages,
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
                hint="run `reprobuild lock` to bring it up to date",
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
            "packages": [_package_table(p) for p in self.python],
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
                    **({"conda": [_conda_table(p) for p in self.conda]} if self.conda else {}),
                    "debian": [_debian_table(p) for p in self.debian],
                    **({"build": build} if (build := _build_table(self.build)) else {}),
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


def _conda_table(package: CondaPackage) -> dict[str, Any]:
    table: dict[str, Any] = {
        "name": package.name,
        "version": package.version,
        "build": package.build,
        "subdir": package.subdir,
        "url": package.url,
        "size": package.size,
        "sha256": package.sha256,
    }
    if package.md5 is not None:
        table["md5"] = package.md5
    if package.uploaded is not None:
        table["upload-time"] = package.uploaded
    table["depends"] = list(package.depends)
    return table | ({"constrains": list(package.constrains)} if package.constrains else {})


def _debian_table(package: DebianPackage) -> dict[str, Any]:
    return {
        "name": package.name,
        "version": package.version,
        "architecture": package.architecture,
        "archive": package.archive,
        "path": package.path,
        "size": package.size,
        "sha256": package.sha256,
    }


def _package_table(package: PythonPackage) -> dict[str, Any]:
    head = {"name": package.name, "version": package.version}
    if package.source is None:
        return {**head, "wheels": [_file_table(package.wheel)]}
    own: dict[str, Any] = {"wheel": _file_table(package.wheel), "requires": list(package.source.requires)}
    if package.source.kind in ("vcs", "directory"):
        tree = {"size": package.source.size, "hashes": {"sha256": package.source.sha256}}
        own = {"wheel": own["wheel"], "tree": tree, "requires": own["requires"]}
    return {**head, package.source.kind: _source_table(package.source), "tool": {"reprobuild": own}}


def _source_table(source: SourceArchive) -> dict[str, Any]:
    under = {"subdirectory": source.subdirectory} if source.subdirectory else {}
    match source.kind:
        case "sdist":
            return _file_table(source)
        case "archive":
            return {"url": source.url, "size": source.size, "hashes": {"sha256": source.sha256}, **under}
        case "vcs":
            ref = {"requested-revision": source.ref} if source.ref else {}
            return {"type": "git", "url": source.url, **ref, "commit-id": source.commit, **under}
        case "directory":
            return {"path": source.url, **under}


def _build_table(build: BuildFiles) -> dict[str, Any]:
    python = [{"name": p.name, "version": p.version, "wheels": [_file_table(p.wheel)]} for p in build.python]
    debian = [_debian_table(p) for p in build.debian]
    return {**({"packages": python} if python else {}), **({"debian": debian} if debian else {})}


def _file_table(file: Wheel | SourceArchive) -> dict[str, Any]:
    table: dict[str, Any] = {"name": file.filename}
    if file.uploaded is not None:
        table["upload-time"] = file.uploaded
    if file.url:
        table["url"] = file.url
    return table | {"size": file.size, "hashes": {"sha256": file.sha256}}
