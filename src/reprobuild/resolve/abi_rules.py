"""ABI rules between torch, NumPy and CUDA that packages do not declare.

uv knows only the requirements that packages name. A compiled module may need more: the C interface of the
NumPy that it was compiled against, the torch of its release, the libraries of one CUDA. Where what uv has
chosen breaks such a rule, the rule becomes a requirement with its reason, and uv chooses again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import requests
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from ..errors import ResolveError
from .cuda_linkage import cuda_libraries, major_of
from .target import TargetPython, holds
from .torch import cuda_of_version, is_cuda_package
from .wheel_metadata import requirements

if TYPE_CHECKING:
    from ..lock.packages import PythonPackage

_FIRST_NUMPY_2 = datetime(2024, 3, 12, tzinfo=UTC)
"""NumPy 2.0.0b1 was published: no earlier wheel is compiled against NumPy 2.

https://github.com/numpy/numpy/releases/tag/v2.0.0b1"""

_TORCH_OF_NUMPY_2 = Version("2.3")
"""The first torch that is compiled against NumPy 2 (https://github.com/pytorch/pytorch/issues/107302)."""

_BY_TORCH = "torchaudio"
"""From 2.11 on it names no torch, has torch's number, and runs on that torch and later ones."""


_EXTEND_TORCH = frozenset({"torchaudio", "torchcodec", "torchvision"})
"""Packages of PyTorch's own whose builds for a GPU need libraries of CUDA that they do not name.

An index that has but one build of each release has that one."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A requirement that a package does not name."""

    requirement: str
    reason: str


def broken_rules(
    found: Collection[PythonPackage],
    requested: Collection[str],
    cuda: str,
    target: TargetPython,
    session: requests.Session,
) -> list[Rule]:
    """Return the rules that a set of packages breaks; none where it is as it should be.

    ``requested`` are the requirements of the request. Raises `ResolveError` where a wheel's metadata, which
    is read for few of them, cannot be read.
    """
    by_name = {package.name: package for package in found}
    rules = [*_numpy_of_torch(by_name), *_by_torch(by_name)]
    with ThreadPoolExecutor(8, "wheel-metadata") as pool:
        # Of a request for the CPU no release fits, which is said once all else is settled.
        extend = [] if rules or cuda == "cpu" else _extensions(found)
        linked = pool.map(lambda package: cuda_libraries(package, session), extend)
        for package, libraries in zip(extend, linked, strict=True):
            rules += _of_libraries(package, libraries, cuda)
        if "numpy" in by_name and Version(by_name["numpy"].version).major > 1 and not rules:
            old = [package for package in found if _is_older_than_numpy_2(package)]
            read = pool.map(lambda package: _requires(package, session), old)
            for package, requires in zip(old, read, strict=True):
                if any(canonicalize_name(each.name) == "numpy" for each in requires):
                    reason = f"{package.name} {package.version} is compiled against NumPy 1"
                    rules.append(Rule("numpy<2", reason))
                    break
        names = {canonicalize_name(Requirement(text).name) for text in requested}
        # What is built here is linked with what the lock has.
        wheels = [p for p in found if p.source is None]
        own = [p for p in wheels if p.name in names and _is_compiled(p)] if cuda != "cpu" else []
        read = pool.map(lambda package: _requires(package, session), own)
        for package, requires in zip(own, read, strict=True):
            major = _cuda_of_extras(requires, target)
            if major is not None and major != cuda.partition(".")[0]:
                reason = f"{package.name} {package.version} is built for CUDA {major}, not {cuda}"
                rules.append(Rule(f"{package.name}<{package.version}", reason))
    return rules


def refuse_gpu_builds(found: Collection[PythonPackage], cuda: str, session: requests.Session) -> None:
    """Raise `ResolveError` for a build for a GPU among the packages of a request for the CPU."""
    for package in _extensions(found) if cuda == "cpu" else ():
        if libraries := cuda_libraries(package, session):
            raise ResolveError(
                f"{package.name} {package.version} is built for a GPU, and the request is for the CPU: it "
                f"needs {', '.join(libraries)}",
                hint="PyTorch's own index has builds for the CPU: give --index pytorch (index in the "
                "request)",
            )


def _extensions(found: Collection[PythonPackage]) -> list[PythonPackage]:
    return [p for p in found if p.name in _EXTEND_TORCH and p.source is None and _is_compiled(p)]


def _numpy_of_torch(found: Mapping[str, PythonPackage]) -> Iterator[Rule]:
    torch, numpy = found.get("torch"), found.get("numpy")
    if torch is None or Version(torch.version) >= _TORCH_OF_NUMPY_2:
        return
    if "packaging" not in found:
        yield Rule("packaging", f"torch {torch.version} imports it, and does not name it")
    if numpy is not None and Version(numpy.version).major > 1:
        yield Rule("numpy<2", f"torch {torch.version} is compiled against NumPy 1")


def _by_torch(found: Mapping[str, PythonPackage]) -> Iterator[Rule]:
    torch, other = found.get("torch"), found.get(_BY_TORCH)
    if torch is None or other is None:
        return
    release = Version(torch.version).release[:2]
    if Version(other.version).release[:2] > release:
        limit = f"{release[0]}.{release[1] + 1}.dev0"
        yield Rule(
            f"{_BY_TORCH}<{limit}",
            f"{_BY_TORCH} {other.version} is made for torch {Version(other.version).major}."
            f"{Version(other.version).minor} and later, not for {torch.version}",
        )


def _of_libraries(package: PythonPackage, libraries: Collection[str], cuda: str) -> Iterator[Rule]:
    """Yield the rule that a build for another CUDA breaks."""
    wrong = sorted({m for m in map(major_of, libraries) if m is not None} - {cuda.partition(".")[0]})
    if wrong:
        reason = f"{package.name} {package.version} is built for CUDA {wrong[0]}, not {cuda}"
        yield Rule(f"{package.name}<{package.version}", reason)


def _cuda_of_extras(requires: Collection[Requirement], target: TargetPython) -> str | None:
    """Return the major version of CUDA whose runtime a wheel names in an extra; None where it names none.

    That is how a wheel tells it which is linked against CUDA's libraries and leaves it to its user to have
    them, as onnxruntime-gpu does.
    """
    majors = set()
    for requirement in requires:
        name = canonicalize_name(requirement.name)
        extra = re.search(r"extra\s*==\s*[\"']([^\"']+)", str(requirement.marker or ""))
        if not is_cuda_package(name) or extra is None or requirement.marker is None:
            continue
        if holds(requirement.marker, {**target.markers, "extra": extra[1]}):
            for specifier in requirement.specifier:
                if specifier.operator in ("==", "~="):
                    version = cuda_of_version(specifier.version.removesuffix(".*"))
                    majors.add(version.partition(".")[0])
    return majors.pop() if len(majors) == 1 else None


def _is_compiled(package: PythonPackage) -> bool:
    return all(tag.platform != "any" for tag in parse_wheel_filename(package.wheel.filename)[3])


def _is_older_than_numpy_2(package: PythonPackage) -> bool:
    time = package.wheel.uploaded
    return time is not None and time < _FIRST_NUMPY_2 and _is_compiled(package) and package.name != "numpy"


def _requires(package: PythonPackage, session: requests.Session) -> list[Requirement]:
    from pypi_simple import DistributionPackage, Link  # noqa: PLC0415 -- as in `index_page`

    wheel = package.wheel
    link = Link(wheel.filename, wheel.url, {"data-core-metadata": "true"})
    return requirements(DistributionPackage.from_link(link), session)
