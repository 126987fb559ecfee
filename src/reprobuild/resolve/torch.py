"""Find the torch for a CUDA version by the wheels' own metadata, without a table kept by hand."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import date, timedelta
from threading import Lock
from typing import TYPE_CHECKING

import requests
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from ..errors import ResolveError
from ..request.dates import end_of
from . import index_page
from .target import TargetPython, holds
from .wheel_metadata import requirements

if TYPE_CHECKING:
    from pypi_simple import DistributionPackage

_AT_ONCE = 8
"""Metadata read at the same time; the search stops after the group that has the answer."""

# torch 1.13 to 2.10 names nvidia-cuda-runtime-cu12, later ones cuda-toolkit or nvidia-cuda-runtime.
_RUNTIME = re.compile(r"nvidia-cuda-runtime(-cu[0-9]+)?|cuda-toolkit")


@dataclass(frozen=True, slots=True)
class Release:
    """A version of torch and its wheel for the target."""

    version: Version
    package: DistributionPackage


class TorchScan:
    """The torch releases of the user's indexes. What was read is kept, so that a second look is quick."""

    def __init__(self, session: requests.Session, as_of: date | None) -> None:
        self._session = session
        self._until = None if as_of is None else end_of(as_of)
        self._pages: Sequence[index_page.File] | None = None
        self._requirements: dict[str, list[Requirement]] = {}
        self._lock = Lock()

    def releases(self, target: TargetPython, wanted: str = "", *, later: bool = False) -> list[Release]:
        """Return the releases with a wheel for the target, newest first.

        ``wanted`` is a specifier. Only an exact one lets yanked releases and pre-releases in. ``later``:
        those after the date, in place of those up to it.
        """
        specifier, exact = SpecifierSet(wanted, prereleases=True), _is_exact(wanted)
        with self._lock:
            if self._pages is None:
                self._pages = index_page.files("torch", self._session)
        wheels: dict[Version, dict[str, DistributionPackage]] = {}
        for file in self._pages:
            version = _version(file.package.filename)
            if version is None:
                continue
            if version not in specifier or (not exact and (version.is_prerelease or file.package.is_yanked)):
                continue
            if self._until is not None and (file.uploaded is None or later != (file.uploaded >= self._until)):
                continue
            wheels.setdefault(version, {}).setdefault(file.package.filename, file.package)
        found = []
        for version in sorted(wheels, reverse=True):
            best = target.best(list(wheels[version]))
            if best is not None:
                found.append(Release(version, wheels[version][best]))
        return found

    def cuda_of(self, release: Release, target: TargetPython) -> str | None:
        """Return the CUDA minor version that a release requires; None if it names none."""
        name = release.package.filename
        if name not in self._requirements:
            self._requirements[name] = requirements(release.package, self._session)
        return cuda_named(self._requirements[name], target.markers)

    def cuda_of_version(self, version: str, target: TargetPython) -> str | None:
        """Return the CUDA version of a release; None if the release is missing or names none."""
        release = next(iter(self.releases(target, f"=={version}")), None)
        return None if release is None else self.cuda_of(release, target)

    def newest_with_cuda(self, wanted: str, target: TargetPython) -> tuple[Version, str] | None:
        """Return the newest release that fits a specifier and names a CUDA, with that; None if none does."""
        with closing(self._cudas(self.releases(target, wanted), target)) as every:
            return next(((release.version, cuda) for release, cuda in every if cuda is not None), None)

    def for_another_cuda(self, cuda: str, wanted: str, target: TargetPython) -> list[Version]:
        """Return the releases that fit a specifier and are not for a CUDA, newest first."""
        every = self._cudas(self.releases(target, wanted), target)
        return [release.version for release, found in every if found != cuda]

    def newest_of_each(self, target: TargetPython) -> dict[str | None, Version]:
        """Return the newest release for each CUDA; None stands for those that name none, as builds for CPUs.

        Reads the metadata of all releases. Raises `ResolveError` where an index cannot be read.
        """
        newest: dict[str | None, Version] = {}
        with closing(self._cudas(self.releases(target), target)) as every:
            for release, cuda in every:
                newest.setdefault(cuda, release.version)
        return newest

    def choose(self, cuda: str, wanted: str, prefer: str | None, target: TargetPython) -> Version:
        """Return the newest torch for a CUDA that fits a specifier, or ``prefer`` where it still fits.

        Raises `ResolveError` when there is none; it lists what there is.
        """
        releases = self.releases(target, wanted)
        if self._until is not None and self._pages and not any(f.uploaded for f in self._pages):
            raise ResolveError(
                "the index does not say when its torch files were published, so as-of cannot be applied",
                hint="use an index that gives upload times (PEP 700), or remove as-of from the request",
            )
        if wanted and not releases:
            raise ResolveError(
                f"the index has no torch {_said(wanted)} {self._where(target)}",
                hint="PyTorch's own index may have that build: give --index pytorch"
                if "+" in wanted
                else "omit torch from the request to get the newest for its CUDA",
            )
        for release in releases:
            if prefer == str(release.version) and self.cuda_of(release, target) == cuda:
                return release.version
        seen: dict[str, Version] = {}
        with closing(self._cudas(releases, target)) as every:
            for release, found in every:
                if found == cuda:
                    return release.version
                if found is not None:
                    seen.setdefault(found, release.version)
        raise self._none(cuda, wanted, seen, target)

    def _newest(self, cuda: str, target: TargetPython) -> Version | None:
        """Return the newest torch for a CUDA version; None without one."""
        try:
            return self.choose(cuda, "", None, target)
        except ResolveError:
            return None

    def _first_later(self, cuda: str, target: TargetPython) -> Version | None:
        """Return the oldest torch for a CUDA among those after the date."""
        if self._until is None:
            return None
        later = self._cudas(self.releases(target, later=True), target)
        return min((release.version for release, found in later if found == cuda), default=None)

    def _cudas(
        self, releases: Sequence[Release], target: TargetPython
    ) -> Generator[tuple[Release, str | None], None, None]:
        """Yield releases with their CUDA. Close it: else what a signal raises in its end is lost."""
        with ThreadPoolExecutor(_AT_ONCE, "torch-metadata") as pool:
            for start in range(0, len(releases), _AT_ONCE):
                group = releases[start : start + _AT_ONCE]
                yield from zip(group, pool.map(lambda r: self.cuda_of(r, target), group), strict=True)

    def _where(self, target: TargetPython) -> str:
        limit = "" if self._until is None else f" published by {self._until - timedelta(seconds=1):%Y-%m-%d}"
        return f"for Python {target.python} on {target.machine}{limit}"

    def _none(
        self, cuda: str, wanted: str, seen: Mapping[str, Version], target: TargetPython
    ) -> ResolveError:
        if wanted:
            built = f"is built for CUDA {', '.join(seen)}" if seen else "names no CUDA that it is built for"
            newest = self._newest(cuda, target)
            ways = [f"give --cuda {next(iter(seen))} (cuda in the request) to keep it"] if seen else []
            if newest is not None:
                ways.append(
                    f"take torch {newest}, the newest for CUDA {cuda}: leave torch out of the request, or "
                    "give --loosen torch with --from"
                )
            hint = ", or ".join(ways) or "change cuda or torch in the request"
            return ResolveError(f"torch {_said(wanted)} {built}, not for {cuda}", hint=hint)
        where = self._where(target)
        if first := self._first_later(cuda, target):
            return ResolveError(
                f"no torch {where} is built for CUDA {cuda}",
                hint=f"torch {first} is the first, published later: set a later as-of",
            )
        if not seen:
            return ResolveError(
                f"no torch {where} on the index names the CUDA that it is built for",
                hint="ask for another Python or a later date, or set UV_INDEX to an index that has it",
            )
        have = sorted(seen, key=Version)
        table = ", ".join(f"{name} (torch {seen[name]})" for name in have)
        return ResolveError(
            f"no torch {where} is built for CUDA {cuda}",
            hint=f"the index has, with the newest torch: {table}. PyTorch's own index may have it: "
            'write index = "pytorch" into the request, or give --index pytorch',
        )


def cuda_named(requires: Sequence[Requirement], markers: Mapping[str, str]) -> str | None:
    """Return the CUDA, as ``12.1``, that requirements pin for an environment; None when they pin none."""
    for requirement in requires:
        if not _RUNTIME.fullmatch(requirement.name.lower().replace("_", "-")):
            continue
        if not holds(requirement.marker, markers):
            continue
        for specifier in requirement.specifier:
            if specifier.operator in ("==", "===", "~="):
                return cuda_of_version(specifier.version.removesuffix(".*"))
    return None


def cuda_of_version(version: str) -> str:
    """Return ``12.1`` for the version ``12.1.105`` of a CUDA package."""
    return ".".join(str(part) for part in (*Version(version).release, 0)[:2])


def is_cuda_package(name: str) -> bool:
    """Whether a package, by its normalised name, is a part that every CUDA build of torch requires."""
    return _RUNTIME.fullmatch(name) is not None


def _is_exact(wanted: str) -> bool:
    return wanted.startswith("==") and not wanted.endswith(".*") and "," not in wanted


def _said(wanted: str) -> str:
    return wanted.removeprefix("==") if _is_exact(wanted) else wanted


def _version(filename: str) -> Version | None:
    try:
        return parse_wheel_filename(filename)[1]
    except InvalidWheelFilename:
        return None
