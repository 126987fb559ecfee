"""What all imports share: the result, and how it becomes the keys of a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from ..errors import RequestError
from ..net.debian_mirrors import architecture
from ..request import toml_reader
from ..request.model import DEBIAN_PYTHONS, DEFAULT_PYTHON, TorchIndex
from ..resolve.target import TargetPython, holds
from ..resolve.torch import cuda_of_version, is_cuda_package


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """What a file asks for."""

    origin: str
    """The file, for messages."""
    name: str
    """What to call the request; any text."""
    requirements: tuple[Requirement, ...]
    """With their markers; none of them a URL."""
    hashes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Normalised name → the sha256 of the files that may be installed, where the file names any."""
    python: str | None = None
    """The minor version, where the file fits but one."""
    requires_python: str = ""
    """What versions the file says that it fits (``requires-python``); empty: any."""
    channels: tuple[str, ...] = ()
    """Of conda, with `conda`."""
    conda: tuple[str, ...] = ()
    """Match specs."""
    cuda: str | None = None
    """Where the origin says it itself; else the pins may."""
    index: TorchIndex | None = None
    """``pytorch`` where the file names PyTorch's own index."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a request that a file decides."""

    packages: tuple[str, ...]
    torch: str | None
    cuda: str | None


def wanted_of(imported: Imported, python: str) -> Keys:
    """Return what is asked for on this machine's kind and a Python minor version."""
    markers = TargetPython(python, architecture(), (2, 99)).markers
    torch: SpecifierSet | None = None
    cuda = imported.cuda
    packages = []
    for requirement in imported.requirements:
        if not is_for(requirement.marker, markers, f"{imported.origin}: {requirement.name}"):
            continue
        name, version = canonicalize_name(requirement.name), pin(requirement)
        if name == "torch":
            torch = requirement.specifier if torch is None else torch & requirement.specifier
            cuda = cuda or _cuda_of_local(version)
            continue
        if version is not None and is_cuda_package(name):
            cuda = cuda or cuda_of_version(version)
        packages.append(str(_without_marker(requirement)))
    return Keys(tuple(packages), _torch_key(torch), cuda)


def is_for(marker: Marker | None, markers: Mapping[str, str], place: str) -> bool:
    """Whether a marker holds. Raises `RequestError` for one that is neither true nor false."""
    found = holds(marker, markers)
    if found is None:
        raise RequestError(
            f"{place}: the marker {str(marker)!r} is neither true nor false", hint="correct it"
        )
    return found


def pin(requirement: Requirement) -> str | None:
    """Return the version that a requirement pins; None where it leaves a choice."""
    specifiers = list(requirement.specifier)
    if len(specifiers) == 1 and specifiers[0].operator in ("==", "==="):
        version = specifiers[0].version
        return None if version.endswith(".*") else version
    return None


def requirement_of(text: str, place: str) -> Requirement:
    """Parse a requirement. Raises `RequestError` for a URL or a local folder, and what is none."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise RequestError(
            f"{place}: {text!r} is not a requirement: {str(error).splitlines()[0]}",
            hint="only packages of an index can be locked, by name and version",
        ) from None
    if requirement.url is not None:
        raise RequestError(
            f"{place}: {text!r} names a URL; only packages of an index can be locked",
            hint="publish a wheel to your own index, and name the package",
        )
    return requirement


def minor_of(requires: str | None) -> str | None:
    """Return the Python minor version that ``requires-python`` names, where it is but one."""
    for specifier in SpecifierSet(requires or ""):
        if specifier.operator in ("==", "===", "~=") and specifier.version.count("."):
            major, minor = specifier.version.split(".")[:2]
            if minor.isdecimal() and (specifier.operator != "~=" or specifier.version.count(".") > 1):
                return f"{major}.{minor}"
    return None


def fitting_python(imported: Imported, given: str | None) -> str:
    """Return the Python for a file: the one given, that of the file, the default, or another of Debian's.

    Raises `RequestError` where the file's ``requires-python`` does not allow it, or no release's.
    """
    if imported.conda:
        return given or imported.python or DEFAULT_PYTHON
    allowed = SpecifierSet(imported.requires_python)
    wanted = given or imported.python
    for python in (wanted,) if wanted else DEBIAN_PYTHONS:
        # The patch version is the release's own, and the project itself is not installed.
        if python == imported.python or allowed.contains(f"{python}.99"):
            return python
    have = ", ".join(f"{release} has {python}" for python, release in DEBIAN_PYTHONS.items())
    raise RequestError(
        f"{imported.origin}: requires-python is {imported.requires_python}, "
        f"which {f'Python {wanted} does not fit' if wanted else 'no Python of a Debian release fits'}",
        hint=f"Debian's {have}; another comes with a base image (--base-image) or from conda",
    )


def read_text(file: Path) -> str:
    """Read a file. Raises `RequestError`."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise RequestError(f"{file}: no such file") from None
    except UnicodeDecodeError:
        raise RequestError(
            f"{file}: not valid UTF-8 text", hint="save it as UTF-8; PowerShell's `>` writes UTF-16"
        ) from None
    except OSError as problem:
        raise RequestError(f"{file}: cannot be read: {problem.strerror}") from None
    except ValueError:  # a character that no path has
        raise RequestError(f"{str(file)!r} is not the name of a file") from None


def load_toml(text: str, where: str) -> dict[str, Any]:
    """Read TOML. Raises `RequestError`."""
    try:
        return toml_reader.load_toml(text)
    except ValueError as error:
        raise RequestError(f"{where}: not valid TOML: {error}") from None


def _cuda_of_local(version: str | None) -> str | None:
    """Return ``11.8`` for ``2.4.1+cu118``, and ``cpu`` for ``2.4.1+cpu``."""
    return cuda_of_flavour((Version(version).local if version is not None else None) or "")


def cuda_of_flavour(text: str) -> str | None:
    """Return ``11.8`` for PyTorch's ``cu118``, ``cpu`` for ``cpu``; None for anything else."""
    if text == "cpu":
        return "cpu"
    digits = text.removeprefix("cu")
    return (
        f"{digits[:-1]}.{digits[-1]}" if text != digits and digits.isdecimal() and len(digits) > 1 else None
    )


def _torch_key(specifier: SpecifierSet | None) -> str | None:
    """Write torch's specifier as a request has it: an exact version, or a range; None for any."""
    if specifier is None or not str(specifier):
        return None
    exact = [s.version for s in specifier if s.operator in ("==", "===") and not s.version.endswith(".*")]
    return exact[0] if len(specifier) == 1 and exact else str(specifier)


def _without_marker(requirement: Requirement) -> Requirement:
    plain = Requirement(str(requirement))
    plain.marker = None
    return plain
