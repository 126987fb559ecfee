"""Resolve a request: torch for its CUDA, wheels by uv, Debian packages by apt, conda packages by rattler."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from urllib.parse import unquote

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from ..errors import ResolveError
from ..host.host import Host
from ..host.machine import architecture
from ..host.workers import workers
from ..lock.model import Lock
from ..lock.packages import BuildFiles, CondaPackage, DebianPackage, PythonPackage
from ..lock.standalone_python import StandalonePython
from ..net.index_settings import find_links, unread_rules
from ..net.session import session as new_session
from ..net.session import without_credentials
from ..request.dates import start_of
from ..request.model import Request, flavour
from ..request.profiles import variables
from .base_image import resolve_base
from .conda import check_wheels, resolve_conda, torch_from_conda
from .constraint_loop import fitting, only_wheels
from .debian_system import System
from .gpu_targets import gpu_targets
from .index_page import linked_files
from .resolution import Hints, Resolution
from .sdist_builds import SourcePackages
from .standalone_python import resolve_standalone
from .target import TargetPython
from .torch import TorchScan, cuda_of_version, is_cuda_package
from .uv_command import ALWAYS
from .wheel_files import WheelEnds, compare_files, new_wheels

__all__ = ["Upgrade", "resolve", "resolve_platforms"]


_NO_TIME = int(datetime(1980, 1, 1, tzinfo=UTC).timestamp())
"""The epoch where no wheel has a time and the request no date: the oldest that a zip file can hold."""
_WHEELS_AT_ONCE = 16
"""Threads that read the ends of wheels, which mostly wait."""
_Found = tuple[tuple[CondaPackage, ...], tuple[PythonPackage, ...], tuple[str, ...], BuildFiles]


@dataclass(frozen=True, kw_only=True, slots=True)
class Upgrade:
    """Which pins of an existing lock need not stay: all, or those of some packages (Python or Debian)."""

    everything: bool = False
    packages: tuple[str, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The packages, in both spellings that a name can have: Python's normalised one and Debian's."""
        return frozenset(self.packages) | {canonicalize_name(name) for name in self.packages}


_NO_HINTS = Hints()


def resolve_platforms(
    request: Request,
    *,
    existing: Sequence[Lock],
    upgrade: Upgrade,
    hints: Hints = _NO_HINTS,
    host: Host,
) -> tuple[Lock, ...]:
    """Return the locks of a request, one a platform: see `resolve`.

    A platform that ``existing`` lacks takes the versions of the first where they fit. Raises `ResolveError`
    that names the platform, where there are several.
    """
    _check_upgrade(upgrade, existing)
    if unread := unread_rules():
        host.console.warn(
            f"{', '.join(unread)}: no effect: a request gives the same lock on every machine; what must hold "
            "belongs in its `constraints` or `as-of`"
        )
    found: list[Lock] = []
    with new_session() as http, workers(_WHEELS_AT_ONCE, "wheel-files") as pool:
        ends = WheelEnds(http, pool)
        for platform in request.platforms or (f"linux/{architecture()}",):
            before = next((lock for lock in existing if lock.platform == platform), None)
            try:
                lock = resolve(
                    request,
                    platform=platform,
                    existing=before,
                    like=found,
                    upgrade=upgrade,
                    hints=hints,
                    ends=ends,
                    host=host,
                )
                compare_files(lock, before, ends, host)
            except ResolveError as error:
                if len(request.platforms) < 2:
                    raise
                raise ResolveError(
                    f"{platform}: {error.message}",
                    hint=f"{error.hint}; or take {platform} out of the request's platforms",
                    cuda=error.cuda,
                ) from None
            found.append(lock)
    return tuple(found)


def resolve(
    request: Request,
    *,
    platform: str | None = None,
    existing: Lock | None,
    like: Sequence[Lock] = (),
    upgrade: Upgrade,
    hints: Hints = _NO_HINTS,
    ends: WheelEnds | None = None,
    host: Host,
) -> Lock:
    """Return the lock of a request for a platform, by default this machine's.

    The same request, indexes and archive give an equal one. Versions in ``existing`` stay where they still
    fit, unless ``upgrade`` says otherwise; without it those of Python packages in ``like`` are taken where
    they fit. ``ends`` begins to read the wheels while apt is at work. Raises `ResolveError` when nothing
    fits or an index cannot be read or verified, `HostError` when this machine lacks apt, uv or a mirror.
    """
    machine = (platform or f"linux/{architecture()}").removeprefix("linux/")
    if existing is not None and (upgrade.everything or existing.platform != f"linux/{machine}"):
        existing = None
    moved = request.base_image in upgrade.packages
    base = resolve_base(request, machine, existing=None if moved else existing, host=host)
    standalone = resolve_standalone(
        request, machine, existing=existing, upgrade=upgrade.names, fitting=hints.pythons, host=host
    )
    # uv would take the names for packages'.
    others = {request.base_image, "python" if standalone is not None else None}
    upgrade = replace(upgrade, packages=tuple(p for p in upgrade.packages if p not in others))
    under = f"Debian {request.suite}" if base is None else str(request.base_image)
    of = f" for {platform}" if len(request.platforms) > 1 else ""
    host.console.step(f"resolving {under} and the Python packages{of}")
    system = System(request, machine, base)
    with new_session() as http, workers(1, "apt") as pool:
        image = _Image(
            system=system,
            apt=pool.submit(system.packages, existing, upgrade.names, host),
            standalone=standalone,
            existing=existing,
            upgrade=upgrade.names,
            host=host,
        )
        # The Python packages depend on the versions of the release's C library and Python, which apt takes
        # seconds to find out. Meanwhile they are resolved for the most likely ones, and again for others.
        resolution = Resolution(
            request=request,
            target=image.likely_target([existing, *like]),
            host=host,
            session=http,
            existing=existing,
            upgrade=None if upgrade.everything else upgrade.names,
            hashes=hints.hashes,
            order=hints.order,
        )
        scan = TorchScan(http, request.as_of)
        found, refused = None, None
        try:
            found = _packages(resolution, like, scan, image)
            if ends is not None and found is not None and new_wheels(found[1], existing):
                ends.begin(found[1])  # while apt is still at work
        except ResolveError as error:
            refused = error
        # An unknown release or Python is the cause of which "no torch" is only the effect, so apt's errors
        # come first.
        debian = image.packages()
        target = image.target()
        if target != resolution.target:
            resolution = replace(resolution, target=target, notes=[])
            found = _packages(resolution, like, scan, image)
        elif refused is not None:
            raise refused
    assert found is not None, "the C library is known by now"
    for note in resolution.notes:
        host.console.warn(note)
    conda, python, known, build = found
    if not torch_from_conda(conda):
        _check_cuda(request, python)
        if request.index is not None:
            _check_index(python)
    versions = {p.name: p.version for p in conda} | {p.name: p.version for p in python}
    return Lock(
        request=request,
        platform=target.platform,
        epoch=_epoch(request, python, conda),
        python=python,
        debian=debian,
        variables=variables(request, versions.get("numpy")),
        conda=conda,
        gpu_targets=known,
        base=base,
        standalone=standalone,
        build=build,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Image:
    """The image below its Python packages, which apt is at work on."""

    system: System
    apt: Future[tuple[DebianPackage, ...]]
    standalone: StandalonePython | None
    existing: Lock | None
    upgrade: frozenset[str]
    host: Host

    def packages(self) -> tuple[DebianPackage, ...]:
        """Wait for apt, and return the Debian packages. Raises its `ResolveError` or `HostError`."""
        return self.apt.result()

    def likely_target(self, others: Sequence[Lock | None]) -> TargetPython:
        """Estimate the target before apt's answer, from the base image or other locks."""
        version = self._version(next((lock.debian for lock in others if lock is not None), ()))
        return self._target(self.system.likely_glibc(others), version)

    def target(self) -> TargetPython:
        """Wait for apt, and return what the wheels are for."""
        debian = self.packages()
        return self._target(self.system.glibc(debian), self._version(debian))

    def _target(self, glibc: tuple[int, int], version: str) -> TargetPython:
        return TargetPython(self.system.request.python, self.system.machine, glibc, version)

    def _version(self, debian: Iterable[DebianPackage]) -> str:
        """Return the whole version of Python; empty where it is not known, or conda's."""
        if self.system.request.conda is not None:
            return ""
        if self.standalone is not None:
            return self.standalone.version
        return self.system.python_version(debian)

    def fits(self, target: TargetPython) -> bool:
        """Wait for apt, and return whether a target is right."""
        return self.target() == target

    def lock(self, target: TargetPython) -> Lock:
        """Return a lock of the image without Python packages, with the packages that builds need."""
        debian = self.packages()
        build = self.system.build_packages(debian, self.existing, self.upgrade, self.host)
        return Lock(
            request=self.system.request,
            platform=target.platform,
            epoch=0,
            python=(),
            debian=debian,
            variables={},
            base=self.system.base,
            standalone=self.standalone,
            build=BuildFiles(debian=build),
        )


def _sources(resolution: Resolution, image: _Image) -> SourcePackages | None:
    """Return what builds packages without a wheel; None where only wheels count.

    That is where the request says so, beside conda's Python, and for another machine than this one.
    """
    target = resolution.target
    if only_wheels(resolution.request, target)[0]:
        return None
    return SourcePackages(resolution, lambda: image.lock(target), lambda: image.fits(target))


def _check_upgrade(upgrade: Upgrade, existing: Sequence[Lock]) -> None:
    if not existing:
        return
    known = {p.name for lock in existing for p in lock.python}
    known |= {p.name for lock in existing for p in lock.debian}
    known |= {p.name for lock in existing for p in lock.conda}
    known |= {lock.request.base_image or "" for lock in existing}
    known |= {"python" for lock in existing if lock.standalone is not None}
    unknown = [name for name in upgrade.packages if not known & {name, canonicalize_name(name)}]
    if unknown:
        raise ResolveError(
            f"{', '.join(unknown)} cannot be upgraded: not in the lock",
            hint="name a package that is in the lock",
        )


def _packages(resolution: Resolution, like: Sequence[Lock], scan: TorchScan, image: _Image) -> _Found | None:
    """Return the conda packages, the wheels on top of them, and the GPUs that torch's wheel has code for.

    Last, what the source packages among the wheels are built with. None where something has to be built, and
    the image has another C library than the target.
    """
    request, target = resolution.request, resolution.target
    sources = _sources(resolution, image)
    conda: tuple[CondaPackage, ...] = ()
    if request.conda is not None:
        moved = resolution.upgrade or frozenset()
        conda = resolve_conda(request, request.conda, target, existing=resolution.existing, upgrade=moved)
        version = next((package.version for package in conda if package.name == "python"), "")
        resolution = replace(resolution, target=replace(target, version=version))
    provided = {p.distribution: p.version for p in conda if p.is_python or p.name == "pip"}
    resolution = replace(resolution, provided=provided)
    if resolution.existing is None and like:
        resolution = replace(resolution, existing=like[0], upgrade=frozenset())
    torch = None if torch_from_conda(conda) else _torch(resolution, scan)
    # What is asked for goes before NumPy, of which nearly any version will do.
    requirements = _wheels([_requirement(request, torch), *request.packages, *ALWAYS], provided)
    with (
        closing(sources) if sources is not None else nullcontext(),
        workers(1, "torch-header") as pool,
    ):
        # Read while uv is at work: it is of the wheel that the scan has chosen.
        likely = pool.submit(_gpu_targets, torch, resolution, scan)
        wheels = fitting(requirements, resolution, sources=sources, scan=None if torch is None else scan)
        if wheels is None:
            return None
        known = likely.result()
        build = BuildFiles() if sources is None else sources.build_files(wheels)
    taken = next((Version(package.version) for package in wheels if package.name == "torch"), None)
    if torch is not None and taken is not None and taken != torch:
        known = _gpu_targets(taken, resolution, scan)
    check_wheels(conda, wheels)
    if request.index is not None and request.cuda != "cpu":
        (own,) = (package for package in wheels if package.name == "torch")
        known = gpu_targets(own.wheel.url, resolution.session)
    return conda, wheels, known, build


def _gpu_targets(torch: Version | None, resolution: Resolution, scan: TorchScan) -> tuple[str, ...]:
    """Return the GPUs that a torch has code for; empty for the CPU and for conda's torch."""
    existing = resolution.existing
    if torch is None:
        return ()
    if existing is not None and existing.gpu_targets and existing.distributions.get("torch") == str(torch):
        return tuple(existing.gpu_targets)
    release = next(iter(scan.releases(resolution.target, f"=={torch}")), None)
    return () if release is None else gpu_targets(release.package.url, resolution.session)


def _wheels(requirements: Iterable[str], provided: Mapping[str, str]) -> list[str]:
    """Remove packages that conda provides. Raises `ResolveError` if their version does not match."""
    wheels = []
    for text in requirements:
        requirement = Requirement(text)
        version = provided.get(canonicalize_name(requirement.name))
        if version is None:
            wheels.append(text)
        elif requirement.url is not None or not requirement.specifier.contains(version, prereleases=True):
            raise ResolveError(
                f"{text} is required, but conda provides {requirement.name} {version}",
                hint="require it in one place only, or the same version in both",
            )
    return wheels


def _torch(resolution: Resolution, scan: TorchScan) -> Version | None:
    """Return the torch for the request's CUDA; None where it is uv that finds it."""
    request, existing = resolution.request, resolution.existing
    if request.cuda == "cpu" or request.index is not None:
        return None
    prefer = (
        existing.distributions.get("torch") if existing is not None and resolution.kept("torch") else None
    )
    return scan.choose(request.cuda, request.torch_specifier, prefer, resolution.target)


def _requirement(request: Request, torch: Version | None) -> str:
    # Three: to == a CPU build 2.4.1+cpu of another index would be as good, and newer.
    return f"torch{request.torch_specifier}" if torch is None else f"torch==={torch}"


def _check_cuda(request: Request, python: Collection[PythonPackage]) -> None:
    """Compare uv's result with the request: another index than the parsed one may have been used."""
    torch = next(Version(package.version) for package in python if package.name == "torch")
    cudas = {cuda_of_version(package.version) for package in python if is_cuda_package(package.name)}
    built_for_gpu = (torch.local or "").startswith(("cu", "rocm", "xpu"))
    if request.cuda == "cpu" and cudas and torch.local == "cpu":
        raise _with_cuda_beside(request, torch, python)
    if request.cuda == "cpu" and (cudas or built_for_gpu):
        raise ResolveError(
            f"the index serves only CUDA builds of torch: it gave {torch}, and the request is for cpu",
            hint="name an index with CPU builds: PyTorch's own with --index pytorch (index in the request), "
            "one of yours in UV_INDEX, or a folder or page of wheels in UV_FIND_LINKS; torch can be pinned "
            "to a version that it has",
        )
    if not cudas and torch.local == flavour(request.cuda):
        return  # PyTorch's older builds have CUDA inside, and only their version says which
    if request.cuda != "cpu" and request.cuda not in cudas:
        raise ResolveError(
            f"torch {torch} was resolved for CUDA {', '.join(sorted(cudas)) or 'none'}, not {request.cuda}",
            hint="another package of the request may ask for another CUDA; or UV_INDEX names several indexes",
        )


def _with_cuda_beside(request: Request, torch: Version, python: Collection[PythonPackage]) -> ResolveError:
    parts = sorted(package.name for package in python if is_cuda_package(package.name))
    asked = {canonicalize_name(Requirement(text).name) for text in request.packages}
    own = [name for name in parts if name in asked]
    return ResolveError(
        f"torch {torch} is for the CPU, as the request is, but {'the request' if own else 'another package'} "
        f"asks for CUDA: {', '.join(own or parts)}",
        hint="leave out what torch for the CPU does not require: with --from, --loosen 'nvidia-*' does so, "
        "and --loosen cuda-toolkit where the file has it; else take it out of packages in the request"
        if own
        else "leave out the package that requires it, or give --cuda and the version",
    )


def _check_index(python: Collection[PythonPackage]) -> None:
    """Check torch against find-links, which uv prefers over any index."""
    torch = next(package for package in python if package.name == "torch")
    with new_session() as http:
        for link in find_links():
            files = linked_files(link, "torch", http)
            if unquote(torch.wheel.url) in {unquote(without_credentials(f.package.url)) for f in files}:
                raise ResolveError(
                    f"torch {torch.version} was found in {without_credentials(link)}, which is set up as "
                    "find-links, and the request names PyTorch's own index",
                    hint="take it out of find-links, or index out of the request",
                )


def _epoch(request: Request, python: Collection[PythonPackage], conda: Collection[CondaPackage]) -> int:
    """Return the time of the newest package: the same packages give the same, whenever they are locked."""
    every = [*(package.file.uploaded for package in python), *(package.uploaded for package in conda)]
    times = [time for time in every if time is not None]
    if times:
        return int(max(times).timestamp())
    return _NO_TIME if request.as_of is None else int(start_of(request.as_of).timestamp())
