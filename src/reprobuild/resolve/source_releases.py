"""Releases of a package that an index has only as a source archive."""

from __future__ import annotations

from datetime import UTC

from packaging.version import Version

from ..errors import ResolveError
from ..lock.packages import SourceArchive
from ..net.session import without_credentials
from . import index_page
from .resolution import Resolution


def releases_without_wheels(name: str, resolution: Resolution) -> dict[str, SourceArchive]:
    """Return version → source archive of the releases that have no wheel for the target.

    A size of 0 is one that the index does not give.
    """
    target, until = resolution.target, resolution.until
    try:
        files = index_page.files(name, resolution.session)
    except ResolveError:
        return {}  # of an index that is a folder, which uv alone reads
    archives: dict[Version, SourceArchive] = {}
    wheels: dict[Version, list[str]] = {}
    for file in files:
        package = file.package
        late = until is not None and (file.uploaded is None or file.uploaded >= until)
        if package.is_yanked or late or not target.fits(package.requires_python):
            continue
        version = file.version(name)
        if version is None:
            continue  # nor is it one for uv
        if file.is_wheel:
            wheels.setdefault(version, []).append(package.filename)
        elif source := _source(file):
            archives.setdefault(version, source)
    return {
        str(version): source
        for version, source in archives.items()
        if target.best(wheels.get(version, [])) is None
    }


def _source(file: index_page.File) -> SourceArchive | None:
    package = file.package
    if not (sha256 := file.sha256) or not package.filename.endswith(index_page.ARCHIVES):
        return None
    return SourceArchive(
        filename=package.filename,
        url=without_credentials(package.url),
        sha256=sha256,
        size=package.size or 0,
        uploaded=None if file.uploaded is None else file.uploaded.astimezone(UTC).replace(microsecond=0),
    )
