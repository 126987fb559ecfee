"""The dependencies of a Poetry project: https://python-poetry.org/docs/dependency-specification/."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from ..errors import RequestError
from .elsewhere import located


def poetry_requirements(
    poetry: Mapping[str, Any], extras: Sequence[str], groups: Sequence[str], where: str, folder: Path
) -> tuple[list[tuple[str, str]], str]:
    """Return requirements with their places, and what Pythons the project fits (PEP 440), from tool.poetry.

    Optional dependencies count where an extra names them. ``folder`` is the project's. Raises `RequestError`
    that names the place.
    """
    tables: list[tuple[str, object]] = [(f"{where}: tool.poetry.dependencies", poetry.get("dependencies"))]
    known = poetry.get("extras", {})
    for extra in extras:
        if extra not in known:
            raise RequestError(f"{where}: no extra {extra!r}", hint=f"it has: {', '.join(known) or 'none'}")
    wanted = {name.lower() for extra in extras for name in known[extra]}
    listed = group_tables(poetry)
    for group in groups:
        if group not in listed:
            raise RequestError(f"{where}: no group {group!r}", hint=f"it has: {', '.join(listed) or 'none'}")
        tables.append((f"{where}: tool.poetry.group.{group}", listed[group]))
    return _of_tables(tables, wanted, folder)


def group_tables(poetry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the dependencies of each group, by name; those from before there were groups are ``dev``."""
    groups = {name: table.get("dependencies") for name, table in poetry.get("group", {}).items()}
    return {"dev": poetry["dev-dependencies"], **groups} if "dev-dependencies" in poetry else groups


def group_requirements(table: object, place: str, folder: Path) -> list[tuple[str, str]]:
    """Return the requirements of one group with their places. Raises `RequestError`."""
    return _of_tables([(place, table)], set(), folder)[0]


def _of_tables(
    tables: Sequence[tuple[str, object]], wanted: set[str], folder: Path
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
                    for text in _requirement(name, each, wanted, f"{place}.{name}", folder)
                ]
    return found, python


def _requirement(name: str, value: object, wanted: set[str], place: str, folder: Path) -> Iterator[str]:
    table: Mapping[str, Any] = value if isinstance(value, dict) else {"version": value}
    if table.get("optional") and name.lower() not in wanted:
        return
    extras = f"[{','.join(table['extras'])}]" if table.get("extras") else ""
    markers = [f"({table['markers']})"] if table.get("markers") else []
    for each in specifier(str(table.get("python", "*")), place).split(","):
        form = re.fullmatch(r"(~=|==|!=|<=|>=|<|>)(.+)", each)
        markers += [f"python_full_version {form[1]} '{form[2]}'"] if form is not None else []
    marker = f" ; {' and '.join(markers)}" if markers else ""
    if (there := located(f"{name}{extras}", table, place, folder)) is not None:
        yield f"{there}{marker}"
        return
    yield f"{name}{extras}{specifier(str(table.get('version', '*')), place)}{marker}"


def specifier(text: str, place: str) -> str:
    """Return a constraint of Poetry's as PEP 440 has it. Raises `RequestError` for alternatives."""
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
            return f">={form[2]},<{_limit(form[1], Version(form[2]))}"
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
