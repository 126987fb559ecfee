"""Import a pyproject.toml: the project's dependencies, its extras and its groups (PEP 621, PEP 735)."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from packaging.dependency_groups import resolve_dependency_groups
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from ..errors import RequestError
from .common import (
    Imported,
    expect_texts,
    fitting_python,
    is_for,
    load_toml,
    merged,
    minor_of,
    requirement_of,
    table_of,
)
from .direct_sources import Stated, UvSources, located
from .indexes import NamedIndexes
from .nested_sources import of_folders
from .pdm import dev_groups, pdm_rules
from .poetry import (
    add_sources,
    entries_for,
    group_requirements,
    group_tables,
    poetry_requirements,
    specifier,
    unused_keys,
    with_included,
)
from .project_files import read_text
from .project_notes import check_flit, line_on_default_groups, lines_on_other_tools, no_dependencies
from .setup_files import imported_files, read_setup, same_extra, setup_file_in
from .target_system import allows, target
from .uv_settings import unread_settings, with_settings
from .uv_table import check_conflicts, overridden, uv_rules

_MOST_LINES = 100_000
_MOST_DEPTH = 50
"""Of groups that include groups."""


def read_pyproject(
    file: Path,
    extras: Sequence[str],
    groups: Sequence[str],
    hosts: Collection[str] = (),
    python: str | None = None,
) -> Imported:
    """Read a project's dependencies, with those of some extras and groups. Raises `RequestError`.

    Sources and rules that depend on the Python are for ``python``, by default the first that fits.
    """
    # PDM and uv put the project's folder in: https://pdm-project.org/latest/usage/dependency/
    root = file.absolute().parent.as_uri()
    text = read_text(file).replace("file:///${PROJECT_ROOT}", root)
    return read_project(load_toml(text, str(file)), file, extras, groups, hosts, python)


def read_project(  # noqa: PLR0917 -- those of `read_pyproject`
    data: dict[str, Any],
    file: Path,
    extras: Sequence[str],
    groups: Sequence[str],
    hosts: Collection[str],
    python: str | None,
) -> Imported:
    """Read a table in the form of a pyproject.toml, found in ``file``. Raises `RequestError`."""
    project = table_of(data, "project", str(file))
    tool = table_of(data, "tool", str(file))
    check_flit(project, tool, file)
    poetry = table_of(tool, "poetry", f"{file}: tool")
    uv, above = with_settings(table_of(tool, "uv", f"{file}: tool"), file)
    indexes = NamedIndexes(hosts)
    if "dependencies" in poetry and "dependencies" not in project:
        return _poetry(data, file, poetry, extras, groups, indexes, python)
    # A pyproject.toml of tools alone; the project is setuptools'.
    other = setup_file_in(file.parent) if "project" not in data and not groups else None
    if other is not None:
        return read_setup(other, extras, hosts)
    optional = table_of(project, "optional-dependencies", f"{file}: project")
    found = _texts(project.get("dependencies", []), f"{file}: project.dependencies")
    dynamic = project.get("dynamic", [])
    if not isinstance(dynamic, list):
        raise RequestError(f"{file}: project.dynamic: expected a list")
    are_elsewhere = "optional-dependencies" in dynamic
    more: Imported | None = None
    if "dependencies" in dynamic or (are_elsewhere and extras):
        more = _dynamic(file, tool, extras if are_elsewhere else (), hosts)
    # Those of uv and PDM are from before the standard had any.
    table = {"dev": uv["dev-dependencies"]} if "dev-dependencies" in uv else {}
    table |= dev_groups(table_of(tool, "pdm", f"{file}: tool"), groups, file)
    table |= table_of(data, "dependency-groups", str(file))
    poetrys = _poetry_groups(poetry, file)
    if not are_elsewhere:
        found += _of_extras(optional, extras, [*table, *poetrys], file)
    found += _of_groups(groups, table, poetry, extras, file)
    project_itself = _with_groups(_described(file, project), groups, table, uv, file)
    markers = _markers_for(project_itself, python)
    found = _without_itself(found, str(project.get("name", "")), optional, file, markers)
    active = {line.extra for line in found if line.extra is not None}
    check_conflicts(uv, file, project_itself.name, {*extras, *active}, groups)
    sources = UvSources(uv, file, indexes, markers)
    if "dependencies" in poetry or "source" in poetry:
        found, applied = _enriched(
            found, poetry, [*entries_for(poetry, groups, extras, markers, file)], file, indexes
        )
        sources.applied += applied
    # An override counts in place of what an extra or group states, and so does its source.
    instead = overridden(uv, file)
    requirements = [
        sources.placed(line._replace(extra=None, group=None) if _name(line) in instead else line)
        for line in found
    ]
    if more is not None:
        stated = (Stated(str(each), more.origin) for each in more.requirements if each.url is None)
        requirements += [sources.placed(line) for line in stated]
        more = replace(more, requirements=tuple(each for each in more.requirements if each.url is not None))
    if not requirements and not (more and more.requirements):
        raise no_dependencies(file, extras={*optional} - {*extras}, groups={*table, *poetrys} - {*groups})
    nested, lines = of_folders(requirements, file, indexes, markers)
    asked: dict[str, set[str]] = {}
    for each in requirements:
        asked.setdefault(canonicalize_name(each.name), set()).update(each.extras)
    rules = uv_rules(uv, file, markers, asked, lambda text, place: sources.placed(Stated(text, place)))
    unread = unread_settings(file)
    pdm = pdm_rules(table_of(tool, "pdm", f"{file}: tool"), file, indexes)
    return merged(
        replace(
            project_itself,
            requirements=(*requirements, *nested),
            places=_places(found),
            lines={str(requirement_of(line.text, line.place)): line.place for line in reversed(found)},
            constraints=rules.constraints,
            overrides=(*rules.overrides, *pdm.overrides),
            exclude_newer=rules.exclude_newer,
            applied=(
                *([f"{above}: its settings of uv count for {file}"] if above is not None else []),
                *sources.applied,
                *lines,
                *rules.applied(f"{file}: tool.uv"),
                *pdm.applied(f"{file}: tool.pdm"),
                *line_on_default_groups(tool, [*table, *poetrys], groups, file),
            ),
            ignored=(
                *(
                    [f"{unread}: uv takes settings from it, and it is outside of the repository"]
                    if unread
                    else []
                ),
                *rules.ignored,
                *pdm.ignored,
                *unused_keys(poetry, file),
                *lines_on_other_tools(tool, file),
            ),
            **indexes.found,
        ),
        more,
    )


def _of_groups(
    groups: Sequence[str],
    table: dict[str, Any],
    poetry: Mapping[str, Any],
    extras: Sequence[str],
    file: Path,
) -> list[Stated]:
    found: list[Stated] = []
    poetrys = _poetry_groups(poetry, file)
    for group in groups:
        if group not in table and canonicalize_name(group) in poetrys:
            for name in with_included(poetry, [group]):
                place, lines = f"{file}: tool.poetry.group.{name}", poetrys.get(name, {})
                found += itertools.starmap(Stated, group_requirements(lines, extras, place, file.parent))
            continue
        try:
            check_size(table, group)
            texts = resolve_dependency_groups(table, group)
        except (LookupError, ValueError, TypeError, ExceptionGroup) as error:
            raise RequestError(
                f"{file}: dependency-groups: {group}: {_reason(error)}",
                hint=f"it has: {', '.join(sorted({*table, *poetrys})) or 'none'}",
            ) from None
        found += [Stated(text, f"{file}: dependency-groups.{group}", group=group) for text in texts]
    return found


def _enriched(
    found: list[Stated],
    poetry: dict[str, Any],
    entries: list[tuple[str, Mapping[str, Any]]],
    file: Path,
    indexes: NamedIndexes,
) -> tuple[list[Stated], list[str]]:
    """Return a project's dependencies from where Poetry's own table says, and a line for each that it names.

    https://python-poetry.org/docs/dependency-specification/#projectdependencies-and-toolpoetrydependencies
    """
    asked = {canonicalize_name(requirement_of(line.text, line.place).name) for line in found}
    here = [(name, entry) for name, entry in entries if name in asked]
    lines, applied = [], add_sources(poetry, here, file, indexes)
    by_name = dict(reversed(here))
    for line in found:
        requirement = requirement_of(line.text, line.place)
        name, place = canonicalize_name(requirement.name), f"{file}: tool.poetry: {requirement.name}"
        where = located(requirement.name, by_name.get(name, {}), place, file.parent)
        if where is not None:
            where.extras, where.marker = requirement.extras, requirement.marker
            lines.append(line._replace(text=str(where)))
            continue
        if requirement.url is None:  # both count: https://python-poetry.org/docs/pyproject/#dependencies-1
            ranges = [specifier(str(each.get("version", "*")), place) for key, each in here if key == name]
            applied += [f"{place}: {text} counts, too" for text in ranges if text]
            requirement.specifier &= SpecifierSet(",".join(filter(None, ranges)))
        lines.append(line._replace(text=str(requirement)))
    return lines, list(dict.fromkeys(applied))


def _markers_for(itself: Imported, python: str | None) -> dict[str, str]:
    """Return the system that markers are read for, with the given Python where it fits the project."""
    fits = python is not None and allows(itself.requires_python, python)
    version = fitting_python(itself, python if fits else None)
    return target(version).markers


def _described(file: Path, project: dict[str, Any]) -> Imported:
    """Return the project without its requirements."""
    try:
        requires = str(SpecifierSet(project.get("requires-python", "")))
        python = minor_of(requires)
    except (InvalidSpecifier, AttributeError, TypeError) as error:
        raise RequestError(f"{file}: project.requires-python: {error}") from None
    name = str(project.get("name") or file.absolute().parent.name)
    return Imported(origin=str(file), name=name, requirements=(), python=python, requires_python=requires)


def _with_groups(
    itself: Imported, groups: Sequence[str], table: Mapping[str, Any], uv: Mapping[str, Any], file: Path
) -> Imported:
    """Return the project with the ``requires-python`` that uv's table has of its groups that count.

    https://docs.astral.sh/uv/concepts/projects/dependencies/#group-requires-python
    """
    lines = {canonicalize_name(name): each for name, each in table.items()}
    settings = {
        canonicalize_name(name): each
        for name, each in table_of(uv, "dependency-groups", f"{file}: tool.uv").items()
    }
    todo, done = [canonicalize_name(name) for name in groups], set[str]()
    ranges = {itself.requires_python}
    while todo:
        group = todo.pop()
        if group not in done:
            done.add(group)
            own = settings.get(group, {})
            ranges.add(str(own.get("requires-python", "")) if isinstance(own, dict) else "")
            todo += [
                canonicalize_name(str(each.get("include-group")))
                for each in lines.get(group, ())
                if isinstance(each, dict)
            ]
    try:
        requires = str(SpecifierSet(",".join(sorted(ranges - {""}))))
    except InvalidSpecifier as error:
        raise RequestError(f"{file}: tool.uv.dependency-groups: requires-python: {error}") from None
    return replace(itself, requires_python=requires, python=minor_of(requires))


def _name(line: Stated) -> str:
    return canonicalize_name(requirement_of(line.text, line.place).name)


def _places(found: Sequence[Stated]) -> dict[str, str]:
    names = ((_name(line), line.place) for line in found)
    return dict(reversed([*names]))


def check_size(table: dict[str, Any], group: str) -> None:
    """Raise `ValueError` for a group that has too many lines with all that it includes written out.

    Groups that each include the next one twice double with every group, and the library writes all of it.
    """
    groups: dict[str, Any] = {
        canonicalize_name(name): lines for name, lines in table.items() if isinstance(name, str)
    }
    sizes: dict[str, int] = {}

    def size(name: str, depth: int = 0) -> int:
        if depth > _MOST_DEPTH:
            raise ValueError(f"includes groups more than {_MOST_DEPTH} deep")
        if name not in sizes:
            sizes[name] = 0  # of a circle, which the library names
            lines = groups.get(name, ())
            inner = [line.get("include-group") for line in lines if isinstance(line, dict)]
            sizes[name] = len(lines) + sum(
                size(canonicalize_name(each), depth + 1) for each in inner if isinstance(each, str)
            )
        return sizes[name]

    if size(canonicalize_name(group)) > _MOST_LINES:
        raise ValueError(f"more than {_MOST_LINES:,} lines, with the groups that it includes written out")


def _of_extras(
    optional: dict[str, Any], extras: Sequence[str], groups: Collection[str], file: Path
) -> list[Stated]:
    found: list[Stated] = []
    for extra in extras:
        name = same_extra(extra, optional)
        if name is None:
            group = same_extra(extra, dict.fromkeys(groups, ()))
            known = f"it has: {', '.join(sorted(optional)) or 'none'}"
            raise RequestError(
                f"{file}: no extra {extra!r}",
                hint=known if group is None else f"it is a group: --group {group}",
            )
        found += _texts(optional[name], f"{file}: project.optional-dependencies.{name}", name)
    return found


def _poetry_groups(poetry: Mapping[str, Any], file: Path) -> dict[str, Any]:
    try:
        return group_tables(poetry)
    except AttributeError:
        raise RequestError(f"{file}: tool.poetry.group: expected tables") from None


def _dynamic(file: Path, tool: dict[str, Any], extras: Sequence[str], hosts: Collection[str]) -> Imported:
    """Return the dependencies that setuptools or hatch reads from files, or a setup file beside it has."""
    try:
        table = tool.get("setuptools", {}).get("dynamic", {})
        dynamic = table.get("dependencies", {}).get("file", [])
        hook = tool.get("hatch", {}).get("metadata", {}).get("hooks", {}).get("requirements_txt", {})
        names = [*([dynamic] if isinstance(dynamic, str) else dynamic), *hook.get("files", ())]
        more = {key: value.get("file", []) for key, value in table.get("optional-dependencies", {}).items()}
        more |= hook.get("optional-dependencies", {})
        missing = [extra for extra in extras if same_extra(extra, more) is None]
        for extra in extras:
            listed = more.get(same_extra(extra, more) or "", [])
            names += [listed] if isinstance(listed, str) else listed
    except (AttributeError, TypeError):
        raise RequestError(f"{file}: tool: expected tables, and lists of files") from None
    if missing and (names or more):
        raise RequestError(
            f"{file}: no extra {missing[0]!r}", hint=f"it has: {', '.join(sorted(more)) or 'none'}"
        )
    if names:
        return imported_files(file.parent, [str(name) for name in names], hosts)
    if (other := setup_file_in(file.parent)) is not None:
        return read_setup(other, extras, hosts)
    raise RequestError(
        f"{file}: project.dynamic: the dependencies are not in the file",
        hint="write them into a requirements file and import that",
    )


def _without_itself(
    found: list[Stated],
    project: str,
    optional: dict[str, Any],
    file: Path,
    markers: Mapping[str, str],
) -> list[Stated]:
    """Replace ``ours[plot]`` in a project's own dependencies with those of its extra ``plot``."""
    kept: list[Stated] = []
    done: set[str] = set()
    todo = list(found)
    while todo:
        line = todo.pop(0)
        requirement = requirement_of(line.text, line.place)
        if not project or canonicalize_name(requirement.name) != canonicalize_name(project):
            kept.append(line)
            continue
        if not is_for(requirement.marker, markers, line.place):
            continue
        for extra in sorted(requirement.extras):
            name = same_extra(extra, optional)
            if name is not None and name not in done:
                done.add(name)
                todo += _texts(optional[name], f"{file}: project.optional-dependencies.{name}", name)
    return kept


def _poetry(  # noqa: PLR0917 -- those of `read_pyproject`
    data: Mapping[str, Any],
    file: Path,
    poetry: dict[str, Any],
    extras: Sequence[str],
    groups: Sequence[str],
    indexes: NamedIndexes,
    python: str | None,
) -> Imported:
    project = _described(file, table_of(data, "project", str(file)))
    tool = table_of(data, "tool", str(file))
    try:
        found, requires = poetry_requirements(poetry, extras, groups, str(file), file.parent)
        both = ",".join(sorted({requires, project.requires_python} - {""}))
        itself = replace(
            project,
            name=str(poetry.get("name") or project.name),
            python=minor_of(both),
            requires_python=both,
        )
        entries = [*entries_for(poetry, groups, extras, _markers_for(itself, python), file)]
        applied = add_sources(poetry, entries, file, indexes)
        applied += line_on_default_groups(tool, group_tables(poetry), groups, file)
        ignored = [*unused_keys(poetry, file), *lines_on_other_tools(tool, file)]
        ignored += [
            f"{file}: {key} is ignored: the dependencies are those of tool.poetry"
            for key, table in (("tool.uv", tool.get("uv")), ("tool.pdm", tool.get("pdm")))
            if table
        ]
    except (AttributeError, TypeError):
        raise RequestError(f"{file}: tool.poetry: its dependencies are not in Poetry's form") from None
    requirements = tuple(indexes.pinned(requirement_of(text, place)) for text, place in found)
    if not requirements:
        known = {*poetry.get("extras", {})} - {*extras}
        raise no_dependencies(file, extras=known, groups={*group_tables(poetry)} - {*groups})
    return replace(
        itself, requirements=requirements, applied=tuple(applied), ignored=tuple(ignored), **indexes.found
    )


def _texts(values: object, place: str, extra: str | None = None) -> list[Stated]:
    texts = expect_texts(values, place, "requirements")
    return [Stated(value, f"{place}[{index}]", extra) for index, value in enumerate(texts)]


def _reason(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_reason(inner) for inner in error.exceptions)
    return str(error).strip("'\"")
