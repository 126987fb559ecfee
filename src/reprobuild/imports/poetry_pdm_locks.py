"""Import poetry.lock and pdm.lock: pins, with the hashes of their files.

A lock of a newer Poetry or PDM says of each package in which groups and under which marker it is wanted; of
an older one that is found out by following what the project's pyproject.toml asks for.
Forms: https://python-poetry.org/docs/ and https://pdm-project.org/en/latest/usage/lockfile/.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from ..errors import RequestError
from ..resolve.target import TargetPython
from .common import (
    Imported,
    expect_table,
    expect_tables,
    fitting_python,
    is_for,
    load_toml,
    marker_of,
    minor_of,
    requirement_of,
    table_of,
    texts_of,
)
from .direct_sources import located
from .indexes import NamedIndexes
from .poetry import specifier
from .project_files import read_text
from .stale_pins import LockedPin, changed_project, changed_since, check_project, out_of_date
from .target_system import target as target_of

MAIN = "main"
"""What Poetry calls the group of the project's own dependencies; PDM says ``default``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Node:
    """A package of a lock."""

    requirement: Requirement
    """A pin, or an address."""
    version: str
    ref: str
    """The branch, tag or commit that the project asked git for."""
    hashes: frozenset[str]
    groups: frozenset[str] | None
    """None: the lock does not say."""
    markers: Mapping[str, str]
    """Group → under which marker; "" for all groups."""
    needs: tuple[Requirement, ...]
    optional: bool
    extra_needs: Mapping[str, tuple[Requirement, ...]] = field(default_factory=dict)
    """Extra → what it requires beside; of Poetry."""
    lists: Mapping[str, tuple[Requirement, ...]] = field(default_factory=dict)
    """Extra → what its release requires with it, whether the lock was made with it or not; of Poetry."""
    extras: frozenset[str] = frozenset()
    """PDM: its locks list a package with extras in addition to the one without."""
    index: str = ""
    """The address of the index that it comes from, where the lock names another than the usual one."""


def read_team_lock(
    file: Path, extras: Sequence[str], groups: Sequence[str], hosts: Collection[str], python: str | None
) -> Imported:
    """Read a poetry.lock or pdm.lock for a Python. Raises `RequestError` that names the package."""
    data = load_toml(read_text(file), str(file))
    packages = expect_tables(data.get("package", []), f"{file}: package")
    metadata = table_of(data, "metadata", str(file))
    is_poetry = file.name == "poetry.lock"
    listed = metadata.get("files", {})
    nodes = [
        _node(table, f"{file}: package[{number}]", file.parent, listed, is_poetry=is_poetry)
        for number, table in enumerate(packages)
    ]
    allowed = metadata.get("python-versions" if is_poetry else "requires_python", "")
    requires = _python(str(allowed), f"{file}: metadata", is_poetry=is_poetry)
    project, roots, known = _project(file, extras, groups, hosts)
    if not is_poetry:
        both = {requires, project.requires_python, _target(metadata, file)}
        requires = ",".join(sorted(both - {""}))
    found = replace(
        project, origin=str(file), python=minor_of(requires), requires_python=requires, requirements=()
    )
    target = target_of(fitting_python(found, python))
    wanted = {canonicalize_name(name) for name in (MAIN, "default", *groups)}
    if all(node.groups is not None for node in nodes):
        chosen = [node for node in nodes if _wanted(node, wanted, extras, target, str(file))]
    elif known:
        chosen = list(_reached(nodes, roots, target, str(file)))
    else:
        raise RequestError(
            f"{file}: does not say which packages are for which group, and no pyproject.toml is beside it",
            hint="put the project's pyproject.toml beside the lock",
        )
    pins = [LockedPin(node.requirement, node.version, node.ref) for node in chosen]
    lines = check_project(file, project, pins, target.python, requires if is_poetry else "")
    if known and (changed := changed_project(file, metadata)) is not None:
        _check_rest(file, nodes, chosen, roots, target)
        lines = (*lines, changed_since(file, changed))
    indexes = NamedIndexes(hosts)
    hashes: dict[str, set[str]] = {}
    for url in sorted({node.index for node in chosen} - {""}):
        indexes.add("--extra-index-url", url, str(file))
    for node in chosen:
        hashes.setdefault(canonicalize_name(node.requirement.name), set()).update(node.hashes)
    requirements = {str(r): r for r in (indexes.pinned(node.requirement) for node in chosen)}
    if not requirements:
        raise RequestError(f"{file}: no package is for the group that was asked for")
    return replace(
        found,
        requirements=tuple(requirements[text] for text in sorted(requirements)),
        hashes={name: frozenset(values) for name, values in sorted(hashes.items()) if values},
        index=found.index or indexes.found["index"],
        cuda=found.cuda or indexes.cuda,
        settings=indexes.found["settings"] or found.settings,
        ignored=(*found.ignored, *lines),
    )


def _target(metadata: Mapping[str, Any], file: Path) -> str:
    """Return the Pythons that a pdm.lock is for on Linux, where it has one range of them.

    https://pdm-project.org/latest/usage/lock-targets/
    """
    place = f"{file}: metadata.targets"
    targets = expect_tables(metadata.get("targets", []), place)
    here = [
        each
        for each in targets
        if re.match(r"(many)?linux", str(each.get("platform", "linux")))
        and str(each.get("implementation", "cpython")) == "cpython"
    ]
    if targets and not here:
        names = ", ".join(str(each.get("platform", each.get("implementation"))) for each in targets)
        raise RequestError(
            f"{place}: the file is for {names}, not for CPython on Linux",
            hint="add a target: pdm lock --append --platform=linux",
        )
    ranges = {_python(str(each.get("requires_python", "")), place, is_poetry=False) for each in here}
    return ranges.pop() if len(ranges) == 1 else ""


def _node(table: Mapping[str, Any], place: str, folder: Path, listed: object, *, is_poetry: bool) -> _Node:
    name, version = table.get("name"), table.get("version")
    if not isinstance(name, str) or not isinstance(version, str | None):
        raise RequestError(f"{place}: expected a name and a version in quotes")
    place = f"{place} ({name})"
    extras = texts_of(table, "extras", place) if not is_poetry else []
    full = f"{name}[{','.join(extras)}]" if extras else name
    source = expect_table(table.get("source", {}), f"{place}.source") if is_poetry else table
    requirement = located(full, _source(source, is_poetry=is_poetry), place, folder)
    if requirement is None:
        requirement = requirement_of(f"{full}=={version}" if version else full, place)
    files = table.get("files", listed.get(name, []) if isinstance(listed, dict) else [])
    found = [str(each.get("hash", "")) for each in expect_tables(files, f"{place}.files")]
    groups = texts_of(table, "groups", place) if "groups" in table else None
    return _Node(
        requirement=requirement,
        version=version or "",
        ref=str(source.get("reference" if is_poetry else "ref", "")),
        hashes=frozenset(each[7:].lower() for each in found if each.startswith("sha256:")),
        groups=None if groups is None else frozenset(canonicalize_name(group) for group in groups),
        markers=_markers(table.get("markers" if is_poetry else "marker"), place),
        needs=tuple(_needs(table.get("dependencies", {}), place)),
        **(_extra_needs(table, place) if is_poetry else {}),
        optional=table.get("optional") is True,
        extras=frozenset(canonicalize_name(extra) for extra in extras),
        index=str(source.get("url", "")) if is_poetry and source.get("type") == "legacy" else "",
    )


def _source(source: Mapping[str, Any], *, is_poetry: bool) -> Mapping[str, Any]:
    """Return where a package comes from in the keys of `located`; empty where that is an index."""
    if not is_poetry:
        return {
            key: source[key]
            for key in ("git", "revision", "ref", "subdirectory", "url", "path")
            if key in source
        }
    match source.get("type"):
        case "git":
            rev = source.get("resolved_reference") or source.get("reference", "")
            under = {key: source[key] for key in ("subdirectory",) if key in source}
            return {"git": source.get("url"), "rev": rev, **under}
        case "url":
            return {"url": source.get("url")}
        case "directory" | "file":
            return {"path": source.get("url")}
        case _:
            return {}


def _markers(value: object, place: str) -> Mapping[str, str]:
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        return {"": value}
    if isinstance(value, dict) and all(isinstance(each, str) for each in value.values()):
        return {canonicalize_name(str(group)): each for group, each in value.items()}
    raise RequestError(f"{place}: expected a marker in quotes, or one for each group")


def _extra_needs(table: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return what each extra of a package requires, of those dependencies that are optional, and of all."""
    optional = tuple(_needs(table.get("dependencies", {}), place, optional=True))
    extras = expect_table(table.get("extras", {}), f"{place}.extras")
    needs: dict[str, tuple[Requirement, ...]] = {}
    lists: dict[str, tuple[Requirement, ...]] = {}
    for extra in extras:
        texts = texts_of(extras, extra, f"{place}.extras")
        names = {canonicalize_name(match[0]) for text in texts if (match := re.match(r"[\w.-]+", text))}
        needs[canonicalize_name(extra)] = tuple(r for r in optional if canonicalize_name(r.name) in names)
        lists[canonicalize_name(extra)] = tuple(_readable(texts))
    return {"extra_needs": needs, "lists": lists}


def _readable(texts: Sequence[str]) -> Iterator[Requirement]:
    for text in texts:
        try:
            yield Requirement(text)
        except (InvalidRequirement, RecursionError):  # as with alternatives, which Poetry alone has
            continue


def _needs(value: object, place: str, *, optional: bool = False) -> Iterator[Requirement]:
    """Yield what a package requires: a table of Poetry's, or a list of PDM's."""
    if isinstance(value, list):
        for text in value:
            try:
                yield Requirement(str(text))
            except InvalidRequirement as error:
                raise RequestError(f"{place}.dependencies: {text!r}: {str(error).splitlines()[0]}") from None
        return
    for name, each in expect_table(value, f"{place}.dependencies").items():
        for entry in each if isinstance(each, list) else [each]:
            table = entry if isinstance(entry, dict) else {}
            if (table.get("optional") is True) is not optional:
                continue  # of an extra, whose table says which
            extras = ",".join(texts_of(table, "extras", place))
            marker = f" ; {table['markers']}" if isinstance(table.get("markers"), str) else ""
            try:
                yield Requirement(f"{name}[{extras}]{marker}" if extras else f"{name}{marker}")
            except InvalidRequirement as error:
                raise RequestError(f"{place}.dependencies.{name}: {str(error).splitlines()[0]}") from None


def _project(
    file: Path, extras: Sequence[str], groups: Sequence[str], hosts: Collection[str]
) -> tuple[Imported, tuple[Requirement, ...], bool]:
    """Return what the project beside a lock says, what it asks for, and whether there is one."""
    from .pyproject import read_pyproject  # noqa: PLC0415 -- that module reads what this one names

    project = file.with_name("pyproject.toml")
    if not project.is_file():
        empty = Imported(origin=str(file), name=file.absolute().parent.name, requirements=())
        return empty, (), False
    found = read_pyproject(project, extras, groups, hosts)
    return found, found.requirements, True


def _check_rest(
    file: Path,
    nodes: Sequence[_Node],
    chosen: Sequence[_Node],
    roots: Sequence[Requirement],
    target: TargetPython,
) -> None:
    """Raise `RequestError` if the lock of a changed project lacks an extra, or pins what is left over."""
    for root in roots:
        if root.marker is not None and not _holds(str(root.marker), target, (), str(file)):
            continue
        own = [node for node in nodes if _is_named(node.requirement, root.name)]
        with_extra = frozenset[str]().union(*(node.extras for node in own))
        for extra in sorted(canonicalize_name(each) for each in root.extras):
            needs = {each.name for node in own for each in node.extra_needs.get(extra, ())}
            lists = [each for node in own for each in node.lists.get(extra, ())]
            lacks = [
                each.name
                for each in lists
                if not any(_is_named(each, name) for name in (root.name, *needs))
                and (each.marker is None or _holds(str(each.marker), target, (extra,), str(file)))
            ]
            if lacks or (file.name == "pdm.lock" and extra not in with_extra):
                what = f"lacks {', '.join(lacks)}" if lacks else "was made without it"
                raise out_of_date(file, f"the project asks for {root.name}[{extra}], and the lock {what}")
    reached = {id(node) for node in _reached(nodes, roots, target, str(file))}
    for node in chosen:
        if id(node) not in reached:
            raise out_of_date(
                file, f"pins {node.requirement.name} {node.version}, which the project no longer asks for"
            )


def _is_named(requirement: Requirement, name: str) -> bool:
    return canonicalize_name(requirement.name) == canonicalize_name(name)


def _wanted(
    node: _Node, wanted: Collection[str], extras: Sequence[str], target: TargetPython, place: str
) -> bool:
    # In one group under a marker, in another without: each group by itself.
    for group in sorted((node.groups or frozenset()) & set(wanted)):
        marker = node.markers.get(group, node.markers.get("", ""))
        if not marker and node.optional and not extras and group in (MAIN, "default"):
            continue
        if not marker or _holds(marker, target, extras, place):
            return True
    return False


def _reached(
    nodes: Sequence[_Node], roots: Sequence[Requirement], target: TargetPython, place: str
) -> Iterator[_Node]:
    """Yield the packages that requirements lead to on a target, each once."""
    by_name: dict[str, list[_Node]] = {}
    for node in nodes:
        by_name.setdefault(canonicalize_name(node.requirement.name), []).append(node)
    todo: list[tuple[Requirement, Sequence[str]]] = [(root, ()) for root in roots]
    seen: set[tuple[int, str]] = set()
    while todo:
        asked, of_extras = todo.pop(0)
        if asked.marker is not None and not _holds(str(asked.marker), target, of_extras, place):
            continue
        name = canonicalize_name(asked.name)
        if name not in by_name:
            raise RequestError(
                f"{place}: lacks {asked.name}, which the project or a package in it asks for",
                hint="update the lock with the tool that made it",
            )
        for node in by_name[name]:
            marker = node.markers.get("")
            if marker is not None and not _holds(marker, target, (), place):
                continue
            named = {canonicalize_name(extra) for extra in asked.extras}
            if node.extras and not node.extras <= named:
                continue
            for extra in sorted(named & node.extra_needs.keys()):
                if (id(node), extra) not in seen:
                    seen.add((id(node), extra))
                    todo += [(need, sorted({*asked.extras, extra})) for need in node.extra_needs[extra]]
            if (id(node), "") not in seen:
                seen.add((id(node), ""))
                todo += [(need, ()) for need in node.needs]
                yield node


def _holds(text: str, target: TargetPython, extras: Sequence[str], place: str) -> bool:
    marker = marker_of(text, place)
    return any(is_for(marker, {**target.markers, "extra": extra}, place) for extra in ("", *extras))


def _python(text: str, place: str, *, is_poetry: bool) -> str:
    try:
        return str(SpecifierSet(specifier(text, place) if is_poetry else text))
    except InvalidSpecifier as error:
        raise RequestError(f"{place}: {error}") from None
