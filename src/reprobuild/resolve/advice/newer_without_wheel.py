"""Versions chosen only because newer ones have no wheel.

Of many packages the newest release, or one that it requires, is published as source alone. uv then takes an
older release, or a pre-release, without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import requests
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from ...errors import ResolveError
from .. import index_page
from ..resolution import Resolution
from ..target import TargetPython
from ..uv_refusal import RefusedError

if TYPE_CHECKING:
    from datetime import datetime

    from ...lock.packages import PythonPackage


@dataclass(frozen=True, slots=True)
class Held:
    """A requested package of which a newer release than the chosen one is not taken."""

    name: str
    version: Version
    newest: Version
    lacking: tuple[str, ...]
    """The packages whose missing wheels keep it back: itself, or some that it requires."""
    unwanted: bool
    """Whether the chosen one is a pre-release that nobody asked for."""


_ATTEMPTS = 4
"""Queries of uv for a reason, at about half a second each."""


def held_back(
    found: Collection[PythonPackage],
    requested: Sequence[str],
    resolution: Resolution,
    attempt: Callable[[str], ResolveError | None],
) -> list[Held]:
    """Return the requested packages of which a newer release is not taken for want of a wheel.

    ``attempt`` tells why one more requirement cannot be
    met; None where it can. A pre-release that nobody asked for is among them, whatever keeps the release.
    """
    target, until, session = resolution.target, resolution.until, resolution.session
    wanted = _by_version(requested)
    asked = {canonicalize_name(each.name) for each in wanted}
    chosen = {package.name: package for package in found if package.name in asked}
    own_of = {name: [each for each in wanted if canonicalize_name(each.name) == name] for name in chosen}

    def newest_of(name: str) -> tuple[Version | None, bool]:
        return _newest(_files(name, session), own_of[name], target, until)

    with ThreadPoolExecutor(8, "index-pages") as pool:  # a page takes megabytes, so none is kept
        judged = list(pool.map(newest_of, chosen))
    held, attempts = list[Held](), _ATTEMPTS
    for (name, package), (newest, wheels) in zip(chosen.items(), judged, strict=True):
        own = own_of[name]
        version = Version(package.version)
        if newest is None or newest == version:
            continue
        unwanted = version.is_prerelease and not any(each.specifier.prereleases for each in own)
        if newest < version and not unwanted:
            continue
        if not wheels:
            held.append(Held(name, version, newest, (name,), unwanted))
        elif unwanted or attempts:
            attempts -= not unwanted
            error = attempt(f"{name}=={newest}")
            lacking = () if error is None else tuple(without_wheels(error))
            if lacking or unwanted:
                held.append(Held(name, version, newest, lacking, unwanted))
    return held


def told(held: Collection[Held], target: TargetPython) -> list[str]:
    """Return a message for each. Raises `ResolveError` for a pre-release in place of a release."""
    lines = []
    for each in held:
        own = each.lacking == (each.name,)
        why = f"requires {', '.join(each.lacking)}, which has no wheel" if each.lacking else ""
        why = "has no wheel" if own else why or "does not fit the others"
        if each.unwanted:
            raise ResolveError(
                f"{each.name}: no release can be taken for Python {target.python} on {target.machine}, only "
                f"the pre-release {each.version}; the newest release, {each.newest}, {why}",
                hint=f"to take the pre-release, give --package {each.name}=={each.version} (packages in the "
                "request), or publish the missing wheel to your own index",
            )
        lines.append(f"{each.name} {each.version} is taken: {each.newest}, the newest, {why}")
    return lines


def sources_alone(requested: Sequence[str], resolution: Resolution) -> list[str]:
    """Return the requested packages none of whose allowed releases has a wheel for the target."""
    target, until, session = resolution.target, resolution.until, resolution.session
    wanted = _by_version(requested)
    names = [canonicalize_name(each.name) for each in wanted]

    def source_alone(files: Collection[index_page.File], each: Requirement) -> bool:
        by_version = _allowed(files, [each], target, until)
        return bool(by_version) and not any(map(target.best, by_version.values()))

    with ThreadPoolExecutor(8, "index-pages") as pool:
        judged = list(pool.map(lambda name, each: source_alone(_files(name, session), each), names, wanted))
    return sorted({name for name, alone in zip(names, judged, strict=True) if alone})


def has_wheel(files: Collection[index_page.File], wanted: Requirement, target: TargetPython) -> bool:
    """Whether a release that a requirement allows has a wheel for a target; no pre-releases."""
    return _newest(files, [wanted], target, None)[1]


def _by_version(requested: Sequence[str]) -> list[Requirement]:
    """Return the requirements that leave the choice to an index; an address leaves none."""
    return [each for each in map(Requirement, requested) if each.url is None]


def without_wheels(error: ResolveError) -> list[str]:
    """Return the packages that uv's refusal names as those without a wheel."""
    return sorted(error.refusal.missing_wheels) if isinstance(error, RefusedError) else []


def _files(name: str, session: requests.Session) -> Sequence[index_page.File]:
    try:
        return index_page.files(name, session)
    except ResolveError:
        return ()  # of an index that is a folder, which uv alone reads


def _newest(
    files: Collection[index_page.File],
    wanted: Sequence[Requirement],
    target: TargetPython,
    until: datetime | None,
) -> tuple[Version | None, bool]:
    """Return the newest release that requirements allow, and whether it has a wheel for the target."""
    by_version = _allowed(files, wanted, target, until)
    if not by_version:
        return None, False
    newest = max(by_version)
    return newest, target.best(by_version[newest]) is not None


def _allowed(
    files: Collection[index_page.File],
    wanted: Sequence[Requirement],
    target: TargetPython,
    until: datetime | None,
) -> dict[Version, list[str]]:
    """Return the files of the releases that requirements, all of one package, allow; no pre-releases."""
    by_version: dict[Version, list[str]] = {}
    for file in files:
        version = file.version(wanted[0].name)
        if version is None or version.is_prerelease or file.package.is_yanked:
            continue
        if until is not None and (file.uploaded is None or file.uploaded >= until):
            continue
        requires = file.package.requires_python
        if not target.fits(requires):
            continue
        if all(each.specifier.contains(version) for each in wanted):
            by_version.setdefault(version, []).append(file.package.filename)
    return by_version
