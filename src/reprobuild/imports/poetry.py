"""The dependencies of a Poetry project: https://python-poetry.org/docs/dependency-specification/."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from ..errors import RequestError
from .common import is_for, marker_of
from .direct_sources import located
from .indexes import NamedIndexes, cuda_in, is_pytorch


def poetry_requirements(
    poetry: Mapping[str, Any], extras: Sequence[str], groups: Sequence[str], where: str, folder: Path
) -> tuple[list[tuple[str, str]], str]:
    """Return requirements with their places, and what Pythons the project fits (PEP 440), from tool.poetry.

    Optional dependencies count where an extra names them. ``folder`` is the project's. Raises `RequestError`
    that names the place.
    """
    tables: list[tuple[str, object]] = [(f"{where}: tool.poetry.dependencies", poetry.get("dependencies"))]
    known = {canonicalize_name(name): value for name, value in poetry.get("extras", {}).items()}
    for extra in extras:
        if canonicalize_name(extra) not in known:
            raise RequestError(f"{where}: no extra {extra!r}", hint=f"it has: {', '.join(known) or 'none'}")
    wanted: set[str] = {
        canonicalize_name(name) for extra in extras for name in known[canonicalize_name(extra)]
    }
    listed = group_tables(poetry)
    for group in with_included(poetry, groups):
        if group not in listed:
            raise RequestError(f"{where}: no group {group!r}", hint=f"it has: {', '.join(listed) or 'none'}")
        tables.append((f"{where}: tool.poetry.group.{group}", listed[group]))
    return _of_tables(tables, wanted, extras, folder)


def group_tables(poetry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the dependencies of each group, by name; those from before there were groups are ``dev``."""
    groups: dict[str, Any] = {
        canonicalize_name(name): table.get("dependencies", {})
        for name, table in poetry.get("group", {}).items()
    }
    return {"dev": poetry["dev-dependencies"], **groups} if "dev-dependencies" in poetry else groups


def with_included(poetry: Mapping[str, Any], groups: Sequence[str]) -> list[str]:
    """Return groups by their normalised names, with those that they include, each once.

    https://python-poetry.org/docs/managing-dependencies/#including-dependencies-from-other-groups
    """
    tables = {canonicalize_name(name): table for name, table in poetry.get("group", {}).items()}
    found: list[str] = []
    todo = [canonicalize_name(name) for name in groups]
    while todo:
        group = todo.pop(0)
        if group not in found:
            found.append(group)
            todo += [canonicalize_name(name) for name in tables.get(group, {}).get("include-groups", ())]
    return found


def optional_groups(poetry: Mapping[str, Any]) -> set[str]:
    """Return the groups that ``poetry install`` installs only where they are asked for."""
    return {
        canonicalize_name(name) for name, table in poetry.get("group", {}).items() if table.get("optional")
    }


def entries_for(
    poetry: Mapping[str, Any],
    groups: Sequence[str],
    extras: Collection[str],
    markers: Mapping[str, str],
    file: Path,
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the entries of dependencies that are for a system, by name; a marker chooses among several."""
    tables = [
        poetry.get("dependencies", {}),
        *(table for name, table in group_tables(poetry).items() if name in with_included(poetry, groups)),
    ]
    for table in tables:
        for name, value in table.items() if isinstance(table, dict) else ():
            for entry in value if isinstance(value, list) else [value]:
                place = f"{file}: tool.poetry: {name}"
                said = {"version": entry} if isinstance(entry, str) else entry
                if isinstance(said, dict) and all(
                    is_for(marker_of(text, place), markers, place) for text in _markers(said, extras, place)
                ):
                    yield canonicalize_name(name), said


def add_sources(
    poetry: Mapping[str, Any],
    entries: Collection[tuple[str, Mapping[str, Any]]],
    file: Path,
    indexes: NamedIndexes,
) -> list[str]:
    """Add the indexes of ``tool.poetry.source`` that count; return a line for each package that names one."""
    named = {
        str(source.get("name")): str(source["url"]) for source in _sources(poetry, file) if "url" in source
    }
    used = {name: str(entry["source"]) for name, entry in entries if "source" in entry}
    for number, source in enumerate(_sources(poetry, file)):
        if "url" in source and (source.get("priority") != "explicit" or source.get("name") in used.values()):
            indexes.add("--extra-index-url", str(source["url"]), f"{file}: tool.poetry.source[{number}]")
    own = named.get(used.get("torch", ""))
    if own is not None and is_pytorch(own):
        indexes.cuda = cuda_in(own) or indexes.cuda
    return [f"{file}: {name} is from the source {source}" for name, source in used.items()]


def unused_keys(poetry: Mapping[str, Any], file: Path) -> Iterator[str]:
    """Yield a line for each key that has no say here."""
    for key in poetry:
        if key not in _KEYS:
            yield f"{file}: tool.poetry.{key} is ignored: reprobuild does not use it"
    yield from _unused_in_groups_and_sources(poetry, file)
    for table in [poetry.get("dependencies", {}), *group_tables(poetry).values()]:
        for name, value in table.items() if isinstance(table, dict) else ():
            for entry in value if isinstance(value, list) else [value]:
                for key in entry if isinstance(entry, dict) else ():
                    if key not in _ENTRY:
                        yield f"{file}: tool.poetry: {name}.{key} is ignored: reprobuild does not use it"


def _sources(poetry: Mapping[str, Any], file: Path) -> Sequence[Mapping[str, Any]]:
    found = poetry.get("source", [])
    if not isinstance(found, list) or not all(isinstance(source, dict) for source in found):
        raise RequestError(f"{file}: tool.poetry.source: expected tables")
    return found


def _unused_in_groups_and_sources(poetry: Mapping[str, Any], file: Path) -> Iterator[str]:
    for name, group in poetry.get("group", {}).items():
        for key in group:
            if key not in ("dependencies", "optional", "include-groups"):
                yield f"{file}: tool.poetry.group.{name}.{key} is ignored: reprobuild does not use it"
    for number, source in enumerate(_sources(poetry, file)):
        if source.get("priority") in ("supplemental", "secondary"):
            yield (
                f"{file}: tool.poetry.source[{number}].priority ({source['priority']}) is ignored: "
                "the first index that knows a package supplies it, and this one is asked before the default"
            )


_KEYS = (
    *("name", "version", "description", "authors", "maintainers", "license", "readme", "homepage", "urls"),
    *("repository", "documentation", "keywords", "classifiers", "packages", "include", "exclude", "extras"),
    *("dependencies", "group", "source", "scripts", "plugins", "build", "package-mode", "dev-dependencies"),
    *("requires-poetry", "requires-plugins", "build-constraints"),
)
_ENTRY = (
    *("version", "extras", "optional", "markers", "python", "platform", "source", "develop"),
    *("git", "branch", "tag", "rev", "subdirectory", "url", "path", "file"),
)


def group_requirements(
    table: object, extras: Collection[str], place: str, folder: Path
) -> list[tuple[str, str]]:
    """Return the requirements of one group with their places. Raises `RequestError`."""
    return _of_tables([(place, table)], set(), extras, folder)[0]


def _of_tables(
    tables: Sequence[tuple[str, object]], wanted: set[str], extras: Collection[str], folder: Path
) -> tuple[list[tuple[str, str]], str]:
    found: list[tuple[str, str]] = []
    python = ""
    for place, table in tables:
        if not isinstance(table, dict):
            raise RequestError(f"{place}: expected a table of dependencies")
        for name, value in table.items():
            if name == "python":
                python = specifier(str(value), f"{place}.python")
            else:
                every = value if isinstance(value, list) else [value]
                found += [
                    (text, f"{place}.{name}")
                    for each in every
                    for text in _requirement(name, each, wanted, extras, f"{place}.{name}", folder)
                ]
    return found, python


def _markers(table: Mapping[str, Any], extras: Collection[str], place: str) -> list[str]:
    """Return the markers of an entry: its own, of its Pythons, and of its platform."""
    markers = [_with_extras(str(table["markers"]), extras)] if table.get("markers") else []
    for each in specifier(str(table.get("python", "*")), place).split(","):
        form = re.fullmatch(r"(~=|==|!=|<=|>=|<|>)(.+)", each)
        markers += [f"python_full_version {form[1]} '{form[2]}'"] if form is not None else []
    return [*markers, f"sys_platform == {table['platform']!r}"] if table.get("platform") else markers


def _with_extras(marker: str, extras: Collection[str]) -> str:
    """Return a marker that knows which extras are asked for; to Poetry ``extra`` is all of them.

    https://python-poetry.org/docs/dependency-specification/#exclusive-extras
    """
    names = {canonicalize_name(extra) for extra in extras}

    def said(form: re.Match[str]) -> str:
        is_true = (canonicalize_name(form[3]) in names) is (form[1] == "==")
        return f"python_version {'>=' if is_true else '<'} '0'"

    return re.sub(r"extra\s*(==|!=)\s*(['\"])(.*?)\2", said, marker)


def _requirement(  # noqa: PLR0917 -- an entry, what is wanted, and where it stands
    name: str, value: object, wanted: set[str], wanted_extras: Collection[str], place: str, folder: Path
) -> Iterator[str]:
    table: Mapping[str, Any] = value if isinstance(value, dict) else {"version": value}
    if table.get("optional") and canonicalize_name(name) not in wanted:
        return
    extras = f"[{','.join(table['extras'])}]" if table.get("extras") else ""
    markers = _markers(table, wanted_extras, place)
    marker = f" ; {' and '.join(f'({each})' for each in markers)}" if markers else ""
    if (there := located(f"{name}{extras}", table, place, folder)) is not None:
        yield f"{there}{marker}"
        return
    yield f"{name}{extras}{specifier(str(table.get('version', '*')), place)}{marker}"


def specifier(text: str, place: str) -> str:
    """Convert a constraint of Poetry's to PEP 440. Raises `RequestError` for alternatives."""
    if "|" in text:
        raise RequestError(f"{place}: {text!r}: alternatives cannot be locked", hint="name one range")
    plain = " ".join(text.split())
    parts = [part for part in re.split(r" ?, ?|(?<=[\w*]) (?=[<>=!~^])", plain) if part]
    found = ",".join(filter(None, (_one(part, place) for part in parts)))
    try:
        SpecifierSet(found)
    except InvalidSpecifier:
        raise RequestError(f"{place}: {text!r} is not a range of versions") from None
    return found


def _one(part: str, place: str) -> str:
    if part == "*":
        return ""
    form = re.fullmatch(r"(\^|~(?!=))\s*(.+)", part)
    try:
        if form is not None:
            # PEP 440 compares no local versions; the index that has them is named beside it.
            return f">={form[2].partition('+')[0]},<{_limit(form[1], Version(form[2]))}"
        if (single := re.fullmatch(r"=\s*([0-9].*)", part)) is not None:
            part = single[1]
        if re.match(r"[0-9]", part):
            Version(part.removesuffix(".*"))
            return f"=={part}"
    except InvalidVersion:
        raise RequestError(f"{place}: {part!r} is not a version") from None
    return part.replace(" ", "")


def _limit(sign: str, version: Version) -> str:
    """Return the first version that ``^`` or ``~`` no longer allows."""
    release = version.release
    if sign == "^":  # up to the first part that is not zero, else the last that is given
        at = next((index for index, part in enumerate(release) if part), len(release) - 1)
    else:
        at = min(1, len(release) - 1)
    return ".".join(str(part) for part in (*release[:at], release[at] + 1))
