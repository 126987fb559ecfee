"""request → lock: torch for its CUDA, wheels by uv, Debian packages by apt, conda packages by rattler."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import requests
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from ..archives import architecture
from ..console import Console
from ..determinism import variables
from ..errors import ResolveError
from ..lockbase import Base
from ..lockfile import CondaPackage, DebianPackage, Lock, PythonPackage
from ..network import session as new_session
from ..request import Request
from .base import dpkg_status, resolve_base
from .conda import resolve_conda, torch_from_conda
from .debian import DebianRequest, resolve_debian
from .python import ALWAYS, resolve_python
from .target import Target, glibc_here, glibc_of
from .torch import TorchScan, cuda_of_version, is_cuda_package, start_of

__all__ = ["Upgrade", "resolve"]

_NO_TIME = int(datetime(1980, 1, 1, tzinfo=UTC).timestamp())
"""The epoch where no wheel has a time and the request no date: the oldest that a zip file can hold."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Upgrade:
    """Which pins of an existing lock need not stay: all, or those of some packages (Python or Debian)."""

    everything: bool = False
    packages: tuple[str, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The packages, in both spellings that a name can have: Python's normalised one and Debian's."""
        return frozenset(self.packages) | {canonicalize_name(name) for name in self.packages}


def resolve(request: Request, *, existing: Lock | None, upgrade: Upgrade, console: Console) -> Lock:
    """Return the lock of a request. The same request, indexes and archive give an equal one.

    Versions in ``existing`` stay where they still fit, unless ``upgrade`` says otherwise. Raises
    `ResolveError` when nothing fits or an index cannot be read or verified, `HostError` when this machine
    lacks apt, uv or a mirror.
    """
    machine = architecture()
    _check_upgrade(upgrade, existing)
    if existing is not None and (upgrade.everything or existing.platform != f"linux/{machine}"):
        existing = None
    moved = request.base_image in upgrade.packages
    base = resolve_base(request, machine, existing=None if moved else existing, console=console)
    # uv would take the name for a package's.
    upgrade = replace(upgrade, packages=tuple(p for p in upgrade.packages if p != request.base_image))
    under = f"Debian {request.suite}" if base is None else str(request.base_image)
    console.step(f"resolving {under} and the Python packages")
    with new_session() as http, ThreadPoolExecutor(1, "apt") as pool:
        apt = pool.submit(_debian, request, base, existing, upgrade, console)
        scan = TorchScan(http, request.as_of)
        # The Python packages hang on the version of the release's C library, which apt takes seconds to tell.
        # They are resolved meanwhile for the one that it most likely is, and again where it is another.
        likely = Target(request.python, machine, _glibc(base, ()) or _likely_glibc(request, existing))
        found, refused = None, None
        try:
            found = _packages(request, existing, upgrade, scan, likely, session=http)
        except ResolveError as error:
            refused = error
        # An unknown release or Python is the cause of which "no torch" is only the effect, so apt's errors
        # come first.
        debian = apt.result()
        target = Target(request.python, machine, _glibc(base, debian) or glibc_of(debian))
        if target != likely:
            found = _packages(request, existing, upgrade, scan, target, session=http)
        elif refused is not None:
            raise refused
    assert found is not None
    conda, python = found
    if not torch_from_conda(request):
        _check_cuda(request, python)
    return Lock(
        request=request,
        platform=target.platform,
        epoch=_epoch(request, python, conda),
        python=python,
        debian=debian,
        variables=variables(request),
        conda=conda,
        base=base,
    )


def _check_upgrade(upgrade: Upgrade, existing: Lock | None) -> None:
    if existing is None:
        return
    known = {p.name for p in existing.python} | {p.name for p in existing.debian}
    known |= {p.name for p in existing.conda} | {existing.request.base_image or ""}
    unknown = [name for name in upgrade.packages if not known & {name, canonicalize_name(name)}]
    if unknown:
        raise ResolveError(
            f"{', '.join(unknown)} cannot be upgraded, since the lock has no such package",
            hint="give the name of a Python or Debian package that is in the lock",
        )


def _debian(
    request: Request, base: Base | None, existing: Lock | None, upgrade: Upgrade, console: Console
) -> tuple[DebianPackage, ...]:
    if base is not None and not request.apt and (base.python or request.conda is not None):
        return ()
    wanted = _debian_request(request, base)
    keep: dict[str, str] = {}
    if existing is not None and existing.suite == wanted.suite and existing.base == base:
        before = _debian_request(existing.request, base)
        keep = {p.name: p.version for p in existing.debian if p.name not in upgrade.names}
        if wanted == before and len(keep) == len(existing.debian):
            return tuple(existing.debian)
    if base is not None:
        wanted = replace(wanted, installed=dpkg_status(base, console))
    return resolve_debian(wanted, keep=keep, console=console)


def _glibc(base: Base | None, debian: Collection[DebianPackage]) -> tuple[int, int] | None:
    """Return the version of a base's C library; None where it is one of Debian's packages on top."""
    if base is None or any(package.name == "libc6" for package in debian):
        return None
    major, minor = base.glibc.split(".")
    return int(major), int(minor)


def _likely_glibc(request: Request, existing: Lock | None) -> tuple[int, int]:
    if existing is not None and existing.base is None and existing.suite == request.suite:
        return glibc_of(existing.debian)
    return glibc_here()


def _packages(
    request: Request,
    existing: Lock | None,
    upgrade: Upgrade,
    scan: TorchScan,
    target: Target,
    *,
    session: requests.Session,
) -> tuple[tuple[CondaPackage, ...], tuple[PythonPackage, ...]]:
    """Return the conda packages, and the wheels on top of them."""
    conda: tuple[CondaPackage, ...] = ()
    if request.conda is not None:
        conda = resolve_conda(request, request.conda, target, existing=existing, upgrade=upgrade.names)
    provided = {p.distribution: p.version for p in conda if p.is_python or p.name == "pip"}
    torch = _torch(request, existing, upgrade, scan, target)
    return conda, resolve_python(
        _wheels([_requirement(request, torch), *ALWAYS, *request.packages], provided),
        target,
        provided=provided,
        as_of=request.as_of,
        existing=existing,
        upgrade=None if upgrade.everything else upgrade.names,
        # The scan has decided on an index; a backend would be another one.
        without=() if torch is None else ("UV_TORCH_BACKEND",),
        session=session,
    )


def _debian_request(request: Request, base: Base | None) -> DebianRequest:
    # conda brings a Python of its own, and two would only be one to mistake for the other.
    python = "" if request.conda is not None or (base is not None and base.python) else request.python
    suite = request.suite if base is None else base.suite
    return DebianRequest(suite=suite, python=python, apt=request.apt, as_of=request.as_of)


def _wheels(requirements: Iterable[str], provided: Mapping[str, str]) -> list[str]:
    """Leave out what conda provides. Raises `ResolveError` where that is not the version asked for."""
    wheels = []
    for text in requirements:
        requirement = Requirement(text)
        version = provided.get(canonicalize_name(requirement.name))
        if version is None:
            wheels.append(text)
        elif requirement.specifier and not requirement.specifier.contains(version, prereleases=True):
            raise ResolveError(
                f"{text} is asked for, and conda gives {requirement.name} {version}",
                hint="ask for it in one place only, or for the same version in both",
            )
    return wheels


def _torch(
    request: Request, existing: Lock | None, upgrade: Upgrade, scan: TorchScan, target: Target
) -> Version | None:
    """Return the torch for the request's CUDA; None for the CPU, where uv's settings decide."""
    if request.cuda == "cpu" or torch_from_conda(request):
        return None
    kept = existing is not None and "torch" not in upgrade.names
    prefer = existing.distributions.get("torch") if existing is not None and kept else None
    return scan.choose(request.cuda, request.torch_specifier, prefer, target)


def _requirement(request: Request, torch: Version | None) -> str:
    return f"torch{request.torch_specifier}" if torch is None else f"torch=={torch}"


def _check_cuda(request: Request, python: Collection[PythonPackage]) -> None:
    """Hold uv's outcome against the request: another index than the one read may have had its say."""
    torch = next(Version(package.version) for package in python if package.name == "torch")
    cudas = {cuda_of_version(package.version) for package in python if is_cuda_package(package.name)}
    built_for_gpu = (torch.local or "").startswith(("cu", "rocm", "xpu"))
    if request.cuda == "cpu" and (cudas or built_for_gpu):
        raise ResolveError(
            f"the index serves only CUDA builds of torch: it gave {torch}, and the request is for cpu",
            hint="name an index with CPU builds: UV_TORCH_BACKEND=cpu for PyTorch's own, UV_INDEX for one "
            "of yours, or UV_FIND_LINKS for a folder or page of wheels; torch can be pinned to a version "
            "that it has",
        )
    if request.cuda != "cpu" and request.cuda not in cudas:
        raise ResolveError(
            f"torch {torch} was resolved for CUDA {', '.join(sorted(cudas)) or 'none'}, not {request.cuda}",
            hint="another package of the request may ask for another CUDA; or UV_INDEX names several indexes",
        )


def _epoch(request: Request, python: Collection[PythonPackage], conda: Collection[CondaPackage]) -> int:
    """Return the time of the newest package: the same packages give the same, whenever they are locked."""
    every = [*(package.wheel.uploaded for package in python), *(package.uploaded for package in conda)]
    times = [time for time in every if time is not None]
    if times:
        return int(max(times).timestamp())
    return _NO_TIME if request.as_of is None else int(start_of(request.as_of).timestamp())
