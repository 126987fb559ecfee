"""``tool.uv.sources`` of a package that comes from git or a folder: named where nothing here uses them.

uv gives the dependencies of such a package the sources that its own pyproject.toml names, or the root of its
workspace; the metadata that its build makes does not have them, so the index's package would be taken unsaid:
https://docs.astral.sh/uv/concepts/projects/dependencies/#dependency-sources.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from packaging.markers import InvalidMarker, Marker
from packaging.metadata import parse_email
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from ..fetch.store import Store
from ..lock.packages import SourceArchive
from ..request.toml_reader import load_toml, table_in
from ..sources.source_archive import told
from .resolution import Resolution
from .target import TargetPython, holds


def lines_on_sources(
    asked: Requirement, source: SourceArchive, metadata: bytes, resolution: Resolution
) -> Iterator[str]:
    """Yield a line for the dependencies of a package whose sources are not used; its archive is in the store.

    ``metadata`` is that of its wheel. What the request itself gives an address or overrides is decided there,
    as is the index of torch. Raises `BuildError`.
    """
    if source.kind not in ("vcs", "directory"):
        return  # uv reads no sources of an archive either
    request, target = resolution.request, resolution.target
    archive = Store(resolution.host.home).path(source.sha256)
    required = _required(metadata, asked.extras, target)
    # Of a folder, the import of a project has taken the indexes already.
    known = ("index",) if source.kind == "directory" else ()
    named: set[str] = set()
    for folder in dict.fromkeys((source.subdirectory, "")):
        text = told(archive, source.filename, subdirectory=folder).pyproject
        try:
            uv = table_in(table_in(load_toml((text or b"").decode()), "tool"), "uv")
        except ValueError as error:
            yield f"{asked.name}: tool.uv.sources is not known: its pyproject.toml is not valid TOML: {error}"
            continue
        if folder == source.subdirectory or "workspace" in uv:
            named |= {canonicalize_name(name) for name in _that_count(table_in(uv, "sources"), target, known)}
    decided = {"torch", *(canonicalize_name(Requirement(text).name) for text in request.overrides)}
    decided |= {
        canonicalize_name(each.name) for each in map(Requirement, request.packages) if each.url is not None
    }
    if lost := sorted((named & required) - decided):
        yield (
            f"{asked.name}: tool.uv.sources in its pyproject.toml is not used: {', '.join(lost)} "
            f"{'is' if len(lost) == 1 else 'are'} taken from the index. To use the source that it names, add "
            f"`{lost[0]} @ ADDRESS` to the packages of the request"
        )


def _required(metadata: bytes, extras: Collection[str], target: TargetPython) -> set[str]:
    """Return the names that a package requires by name, with its extras."""
    found: set[str] = set()
    for text in parse_email(metadata)[0].get("requires_dist", []):
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue  # uv refuses it
        environments = ({**target.markers, "extra": extra} for extra in ("", *extras))
        if requirement.url is None and any(holds(requirement.marker, each) for each in environments):
            found.add(canonicalize_name(requirement.name))
    return found


def _that_count(sources: Mapping[str, Any], target: TargetPython, known: Collection[str]) -> Iterator[str]:
    """Yield the names of sources, but of those that are for other systems alone, or of a ``known`` kind."""
    for name, entries in sources.items():
        for entry in entries if isinstance(entries, list) else [entries]:
            own = entry if isinstance(entry, dict) else {}
            try:
                marker = Marker(str(own["marker"])) if "marker" in own else None
            except (InvalidMarker, RecursionError):
                marker = None
            if holds(marker, target.markers) is not False and not own.keys() & {*known}:
                yield name
                break
