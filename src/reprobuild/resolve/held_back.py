"""What is chosen only since wheels are: pre-releases, and versions far behind the newest.

Of many packages the newest release, or one that it requires, is published as source alone. uv then takes an
older release, or a pre-release, without a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import requests
from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from ..errors import ResolveError
from . import index_page
from .target import TargetPython

if TYPE_CHECKING:
    from datetime import datetime

    from ..lock.model import PythonPackage


_ATTEMPTS = 4
"""How often uv is asked for a reason; each takes it about half a second."""

_NO_WHEEL = re.compile(
    r"(?:all versions of )?(?<![<>=!\w.-])([A-Za-z][\w.-]*)(?:[<>=!]\S+)? ha(?:s|ve) no usable wheels|"
    r"all of: (?:\S+ )*?([A-Za-z0-9._-]+)[<>=!]\S+ have no usable wheels"
)


def held_back(
    found: Collection[PythonPackage],
    requested: Sequence[str],
    target: TargetPython,
    *,
    until: datetime | None,
    attempt: Callable[[str], ResolveError | None],
    session: requests.Session,
) -> list[str]:
    """Return a line for each requested package of which a newer release is not taken for want of a wheel.

    ``until``: what was published later does not count. ``attempt`` tells why one more requirement cannot be
    met; None where it can. Raises `ResolveError` where a pre-release was taken that nobody asked for, since
    no release has a wheel.
    """
    wanted = [Requirement(text) for text in requested]
    asked = {canonicalize_name(each.name) for each in wanted}
    chosen = {package.name: package for package in found if package.name in asked}
    with ThreadPoolExecutor(8, "index-pages") as pool:
        pages = dict(zip(chosen, pool.map(lambda name: _files(name, session), chosen), strict=True))
    lines, attempts = [], _ATTEMPTS
    for name, package in chosen.items():
        own = [each for each in wanted if canonicalize_name(each.name) == name]
        newest, wheels = _newest(pages[name], own, target, until)
        version = Version(package.version)
        if newest is None or newest == version:
            continue
        if version.is_prerelease and not any(each.specifier.prereleases for each in own):
            error = attempt(f"{name}=={newest}") if wheels else None
            names = [] if error is None else without_wheels(error)
            why = "has no wheel" if not wheels else "does not fit the others"
            why = f"requires {', '.join(names)}, which has no wheel" if names else why
            raise ResolveError(
                f"{name}: no release can be taken for Python {target.python} on {target.machine}, only the "
                f"pre-release {version}; the newest release, {newest}, {why}",
                hint=f'ask for the pre-release by its version, "{name}=={version}", or publish the missing '
                "wheel to your own index",
            )
        if newest < version:
            continue
        if not wheels:
            lines.append(f"{name} {version} is taken: {newest}, the newest, has no wheel")
        elif attempts:
            attempts -= 1
            error = attempt(f"{name}=={newest}")
            if error is not None and (lacking := without_wheels(error)):
                why = f"requires {', '.join(lacking)}, which has no wheel"
                lines.append(f"{name} {version} is taken: {newest}, the newest, {why}")
    return lines


def sources_alone(
    requested: Sequence[str], target: TargetPython, until: datetime | None, session: requests.Session
) -> list[str]:
    """Return the requested packages none of whose allowed releases has a wheel for the target."""
    wanted = [Requirement(text) for text in requested]
    names = [canonicalize_name(each.name) for each in wanted]
    with ThreadPoolExecutor(8, "index-pages") as pool:
        pages = list(pool.map(lambda name: _files(name, session), names))
    found = set()
    for name, each, page in zip(names, wanted, pages, strict=True):
        by_version = _allowed(page, [each], target, until)
        if by_version and not any(target.best(files) for files in by_version.values()):
            found.add(name)
    return sorted(found)


def without_wheels(error: ResolveError) -> list[str]:
    """Return the packages that uv's reason names as those without a wheel."""
    text = re.sub(r"\s+", " ", error.message)
    return sorted({form[1] or form[2] for form in _NO_WHEEL.finditer(text)})


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
    """Return the files of the releases that requirements allow; no pre-releases."""
    by_version: dict[Version, list[str]] = {}
    for file in files:
        version = _version(file.package.filename)
        if version is None or version.is_prerelease or file.package.is_yanked:
            continue
        if until is not None and (file.uploaded is None or file.uploaded >= until):
            continue
        requires = file.package.requires_python
        if requires and not _fits_python(requires, target):
            continue
        if all(each.specifier.contains(version) for each in wanted):
            by_version.setdefault(version, []).append(file.package.filename)
    return by_version


def _fits_python(requires: str, target: TargetPython) -> bool:
    try:
        return SpecifierSet(requires).contains(f"{target.python}.99")
    except InvalidSpecifier:
        return True


def _version(filename: str) -> Version | None:
    for parse in (parse_wheel_filename, parse_sdist_filename):
        try:
            return parse(filename)[1]
        except (InvalidWheelFilename, InvalidSdistFilename):
            continue
    return None
