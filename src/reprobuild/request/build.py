"""The table ``build`` of a request: what packages without a wheel are built with. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from .table import Table, shown

DEBIAN_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")
_PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_MOST_CHARACTERS = 4096
"""Of a variable's value; Linux takes 128 KiB of one."""

KEYS = ("apt", "cuda", "env", "requires", "torch")
"""Of the table of one package."""

GPUS = "TORCH_CUDA_ARCH_LIST"
"""Variable that selects the GPUs for which extensions of PyTorch are built."""

FIRST_CUDA = 13
"""The first major version whose wheels have nvcc; those of CUDA 12 have only parts of it."""

OWN = (
    *("PATH", "HOME", "TMPDIR", "LC_ALL", "LANG", "TZ", "PYTHONHASHSEED", "SOURCE_DATE_EPOCH", "PYTHONPATH"),
    *("PYTHONHOME", "VIRTUAL_ENV", "CUDA_HOME"),
)
"""Variables of a build that reprobuild sets itself, so that it repeats."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PackageBuild:
    """Build settings of one package, in addition to its own."""

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
    """Build settings of all packages without a wheel."""

    apt: tuple[str, ...] = ()
    """Debian packages, sorted."""
    packages: tuple[PackageBuild, ...] = ()
    """Sorted by name."""

    def of(self, name: str) -> PackageBuild:
        """Return the settings of a package by its normalized name."""
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
    """Return what a request's key ``build`` says. Raises `TableError`."""
    own = table.table("build", default={})
    packages = []
    for key, value in own.data.items():
        if key == "apt":
            continue
        if not _PACKAGE.fullmatch(key):
            raise own.bad(key, f"{key!r} is not the name of a Python package")
        if not isinstance(value, dict):
            raise own.bad(
                key,
                f"expected a table for the package {key}, got {shown(value)}",
                "known keys: apt; all others are names of Python packages, as [build.NAME]",
            )
        inner = own.table(key, KEYS)
        packages.append(
            PackageBuild(
                name=canonicalize_name(key),
                apt=inner.sorted("apt", debian_name),
                env=_env(inner),
                requires=inner.sorted("requires", requirement_of_index),
                torch=inner.flag("torch"),
                cuda=_cuda(inner, table.value("cuda", str, "")),
            )
        )
    names = [each.name for each in packages]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise own.bad(twice[0], "is listed more than once")
    return Build(
        apt=own.sorted("apt", debian_name),
        packages=tuple(sorted(packages, key=lambda each: each.name)),
    )


def _cuda(table: Table, cuda: str) -> bool:
    """Return the key cuda of a package, in a request for a CUDA."""
    if not table.flag("cuda"):
        return False
    if not has_nvcc_wheels(cuda):
        raise table.bad(
            "cuda",
            f"there is no nvcc for {'the CPU' if cuda == 'cpu' else f'CUDA {cuda}'}: NVIDIA's "
            f"wheels have it from CUDA {FIRST_CUDA}.0 on",
            "take a newer CUDA, or a wheel that is built elsewhere: NAME @ https://..., or in a folder "
            "that UV_FIND_LINKS names",
        )
    if GPUS not in table.value("env", dict, {}):
        raise table.bad(
            "cuda",
            "the GPUs to build for are missing; they are named, and never detected",
            f'add env = {{ {GPUS} = "8.0;9.0" }} to the table, with those that the image is for',
        )
    return True


def _env(table: Table) -> tuple[tuple[str, str], ...]:
    env = table.table("env", default={})
    for name, value in env.data.items():
        if not _VARIABLE.fullmatch(name):
            raise env.bad(name, f"{name!r} is not a variable's name")
        if name in OWN or name.startswith("LD_"):
            raise env.bad(name, f"reprobuild sets {name} itself, so that a build repeats")
        if not isinstance(value, str) or not value.isprintable() or len(value) > _MOST_CHARACTERS:
            raise env.bad(name, "expected one line of text in quotes")
    return tuple(sorted(env.data.items()))


def requirement(text: str) -> Requirement:
    """Read a requirement. Raises ValueError."""
    try:
        found = Requirement(text)
    except InvalidRequirement as error:
        raise ValueError(f"{text!r} is not a PEP 508 requirement: {str(error).splitlines()[0]}") from None
    if not str(found).isprintable():  # a marker may have an escaped line break, which uv would read as one
        raise ValueError(f"{found.name}: has a line break or another control character")
    return found


def debian_name(text: str) -> str:
    """Return the name of a Debian package unchanged. Raises ValueError if it is not valid."""
    if not DEBIAN_NAME.fullmatch(text):
        raise ValueError(f"{text!r} is not a valid name of a Debian package")
    return text


def requirement_of_index(text: str) -> str:
    """Return a requirement that names no address, in its one spelling. Raises ValueError."""
    found = requirement(text)
    if found.url is not None:
        raise ValueError(f"{text!r} names a URL; only packages of an index can be locked")
    return str(found)
