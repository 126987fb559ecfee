"""The table ``build`` of a request: what packages without a wheel are built with. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from ..errors import RequestError
from .toml_reader import Table

_DEBIAN_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")
_PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_MOST_CHARACTERS = 4096
"""Of a variable's value; Linux takes 128 KiB of one."""

KEYS = ("apt", "cuda", "env", "requires", "torch")
"""Of the table of one package."""

GPUS = "TORCH_CUDA_ARCH_LIST"
"""The variable by which extensions of PyTorch are told the GPUs that they are built for."""

FIRST_CUDA = 13
"""The first major version whose wheels have nvcc; those of CUDA 12 have only parts of it."""

OWN = (
    *("PATH", "HOME", "TMPDIR", "LC_ALL", "LANG", "TZ", "PYTHONHASHSEED", "SOURCE_DATE_EPOCH", "PYTHONPATH"),
    *("PYTHONHOME", "VIRTUAL_ENV", "CUDA_HOME"),
)
"""Variables of a build that reprobuild sets itself, so that it repeats."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PackageBuild:
    """What one package is built with, beside what it asks for itself."""

    name: str
    """Normalised."""
    apt: tuple[str, ...] = ()
    """Debian packages, sorted."""
    env: tuple[tuple[str, str], ...] = ()
    """Variables, sorted by name."""
    requires: tuple[str, ...] = ()
    """Requirements that are installed for the build, sorted: more of them, or narrower ones."""
    torch: bool = False
    """Whether the lock's own torch is installed for the build."""
    cuda: bool = False
    """Whether nvcc and CUDA's headers are installed for the build, of NVIDIA's wheels."""

    def to_dict(self) -> dict[str, Any]:
        """Return the table; what is not set is left out."""
        table: dict[str, Any] = {"apt": list(self.apt), "env": dict(self.env)}
        table |= {"requires": list(self.requires), "torch": self.torch, "cuda": self.cuda}
        return {key: value for key, value in table.items() if value}


@dataclass(frozen=True, kw_only=True, slots=True)
class Build:
    """What all packages without a wheel are built with."""

    apt: tuple[str, ...] = ()
    """Debian packages, sorted."""
    packages: tuple[PackageBuild, ...] = ()
    """Sorted by name."""

    def of(self, name: str) -> PackageBuild:
        """Return what is said of a package, by its normalised name."""
        return next((each for each in self.packages if each.name == name), PackageBuild(name=name))

    @property
    def every_apt(self) -> tuple[str, ...]:
        """The Debian packages of all builds, which share one root; sorted."""
        return tuple(sorted({*self.apt, *(name for each in self.packages for name in each.apt)}))

    def to_dict(self) -> dict[str, Any]:
        """Return the table that `build` reads; what is not set is left out."""
        table: dict[str, Any] = {"apt": list(self.apt)} if self.apt else {}
        return table | {each.name: each.to_dict() for each in self.packages}


def has_nvcc_wheels(cuda: str) -> bool:
    """Whether NVIDIA has nvcc as a wheel for a request's CUDA."""
    return cuda != "cpu" and int(cuda.partition(".")[0] or 0) >= FIRST_CUDA


def build(table: Table) -> Build:
    """Return what a request's key ``build`` says. Raises `RequestError`."""
    data: Mapping[str, Any] = table.value("build", dict, {})
    where = table.where("build")
    packages = []
    for key, value in data.items():
        if key == "apt":
            continue
        if not _PACKAGE.fullmatch(key):
            raise RequestError(f"{where}.{key}: {key!r} is not the name of a Python package")
        if not isinstance(value, dict):
            raise RequestError(
                f"{where}.{key}: expected a table for the package {key}, got {value!r}",
                hint="known keys: apt; all others are names of Python packages, as [build.NAME]",
            )
        inner = Table(value, f"build.{key}.", where.rpartition(": ")[0], KEYS)
        packages.append(
            PackageBuild(
                name=canonicalize_name(key),
                apt=_apt(inner),
                env=_env(inner),
                requires=tuple(
                    sorted({_requirement(inner.where("requires", i), t) for i, t in inner.texts("requires")})
                ),
                torch=inner.value("torch", bool, False),  # noqa: FBT003 -- as the other keys
                cuda=_cuda(inner, table.value("cuda", str, "")),
            )
        )
    names = [each.name for each in packages]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise RequestError(f"{where}.{twice[0]}: is listed more than once")
    return Build(
        apt=_apt(Table(data, "build.", where.rpartition(": ")[0], tuple(data))),
        packages=tuple(sorted(packages, key=lambda each: each.name)),
    )


def _cuda(table: Table, cuda: str) -> bool:
    """Return the key cuda of a package, in a request for a CUDA."""
    wanted: bool = table.value("cuda", bool, False)  # noqa: FBT003 -- as the other keys
    if not wanted:
        return False
    where = table.where("cuda")
    if not has_nvcc_wheels(cuda):
        raise RequestError(
            f"{where}: there is no nvcc for {'the CPU' if cuda == 'cpu' else f'CUDA {cuda}'}: NVIDIA's "
            f"wheels have it from CUDA {FIRST_CUDA}.0 on",
            hint="take a newer CUDA, or a wheel that is built elsewhere: NAME @ https://..., or in a folder "
            "that UV_FIND_LINKS names",
        )
    if GPUS not in table.value("env", dict, {}):
        raise RequestError(
            f"{where}: the GPUs to build for are missing; they are named, and never detected",
            hint=f'add env = {{ {GPUS} = "8.0;9.0" }} to the table, with those that the image is for',
        )
    return True


def _apt(table: Table) -> tuple[str, ...]:
    for index, name in table.texts("apt"):
        if not _DEBIAN_NAME.fullmatch(name):
            raise RequestError(
                f"{table.where('apt', index)}: {name!r} is not a valid name of a Debian package"
            )
    return tuple(sorted({name for _, name in table.texts("apt")}))


def _env(table: Table) -> tuple[tuple[str, str], ...]:
    found: Mapping[str, object] = table.value("env", dict, {})
    for name, value in found.items():
        where = f"{table.where('env')}.{name}"
        if not _VARIABLE.fullmatch(name):
            raise RequestError(f"{where}: {name!r} is not a variable's name")
        if name in OWN or name.startswith("LD_"):
            raise RequestError(f"{where}: reprobuild sets {name} itself, so that a build repeats")
        if not isinstance(value, str) or not value.isprintable() or len(value) > _MOST_CHARACTERS:
            raise RequestError(f"{where}: expected one line of text in quotes")
    return tuple(sorted((name, str(value)) for name, value in found.items()))


def _requirement(where: str, text: str) -> str:
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise RequestError(
            f"{where}: {text!r} is not a PEP 508 requirement: {str(error).splitlines()[0]}"
        ) from None
    if requirement.url is not None:
        raise RequestError(f"{where}: {text!r} names a URL; only packages of an index can be locked")
    return str(requirement)
