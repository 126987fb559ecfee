"""pyproject.toml → the dependencies of the project, its extras and its groups (PEP 621, PEP 735)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from packaging.dependency_groups import resolve_dependency_groups
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from ..errors import RequestError
from .common import Imported, load_toml, minor_of, read_text, requirement_of
from .poetry import poetry_requirements
from .requirements import read_requirements


def read_pyproject(file: Path, extras: Sequence[str], groups: Sequence[str]) -> Imported:
    """Read a project's dependencies, with those of some extras and groups. Raises `RequestError`."""
    data = load_toml(read_text(file), str(file))
    project = _table(data, "project", str(file))
    tool = _table(data, "tool", str(file))
    poetry = _table(tool, "poetry", f"{file}: tool")
    if "dependencies" in poetry and "dependencies" not in project:
        return _poetry(file, poetry, extras, groups)
    optional = _table(project, "optional-dependencies", f"{file}: project")
    found = _texts(project.get("dependencies", []), f"{file}: project.dependencies")
    dynamic = project.get("dynamic", [])
    if not isinstance(dynamic, list):
        raise RequestError(f"{file}: project.dynamic: expected a list")
    if "dependencies" in dynamic:
        found += _dynamic(file, tool)
    for extra in extras:
        if extra not in optional:
            raise RequestError(
                f"{file}: no extra {extra!r}", hint=f"it has: {', '.join(sorted(optional)) or 'none'}"
            )
        found += _texts(optional[extra], f"{file}: project.optional-dependencies.{extra}")
    table = _table(data, "dependency-groups", str(file))
    for group in groups:
        try:
            texts = resolve_dependency_groups(table, group)
        except (LookupError, ValueError, TypeError, ExceptionGroup) as error:
            raise RequestError(
                f"{file}: dependency-groups: {group}: {_reason(error)}",
                hint=f"it has: {', '.join(sorted(table)) or 'none'}",
            ) from None
        found += [(text, f"{file}: dependency-groups.{group}") for text in texts]
    if not found:
        raise RequestError(
            f"{file}: no dependencies",
            hint="name a group with --group, or an extra with --extra; if they are in setup.py, "
            "write them into a requirements file and import that",
        )
    try:
        requires = str(SpecifierSet(project.get("requires-python", "")))
        python = minor_of(requires)
    except (InvalidSpecifier, AttributeError, TypeError) as error:
        raise RequestError(f"{file}: project.requires-python: {error}") from None
    return Imported(
        origin=str(file),
        name=str(project.get("name") or file.absolute().parent.name),
        requirements=tuple(requirement_of(text, place) for text, place in found),
        python=python,
        requires_python=requires,
    )


def _dynamic(file: Path, tool: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the dependencies that setuptools or hatch reads from requirements files."""
    try:
        dynamic = tool.get("setuptools", {}).get("dynamic", {}).get("dependencies", {}).get("file", [])
        hook = tool.get("hatch", {}).get("metadata", {}).get("hooks", {}).get("requirements_txt", {})
        names = [*([dynamic] if isinstance(dynamic, str) else dynamic), *hook.get("files", ())]
    except (AttributeError, TypeError):
        raise RequestError(f"{file}: tool: expected tables, and lists of files") from None
    if not names:
        raise RequestError(
            f"{file}: project.dynamic: the dependencies are not in the file",
            hint="write them into a requirements file and import that",
        )
    return [
        (str(requirement), str(file.parent / str(name)))
        for name in names
        for requirement in read_requirements(file.parent / str(name)).requirements
    ]


def _poetry(file: Path, poetry: dict[str, Any], extras: Sequence[str], groups: Sequence[str]) -> Imported:
    try:
        found, requires = poetry_requirements(poetry, extras, groups, str(file))
    except (AttributeError, TypeError):
        raise RequestError(f"{file}: tool.poetry: its dependencies are not in Poetry's form") from None
    return Imported(
        origin=str(file),
        name=str(poetry.get("name") or file.absolute().parent.name),
        requirements=tuple(requirement_of(text, place) for text, place in found),
        python=minor_of(requires),
        requires_python=requires,
    )


def _table(data: dict[str, Any], key: str, place: str) -> dict[str, Any]:
    value = data.get(key, {})
    if not isinstance(value, dict):
        raise RequestError(f"{place}: {key}: expected a table")
    return value


def _texts(values: object, place: str) -> list[tuple[str, str]]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise RequestError(f"{place}: expected a list of requirements")
    return [(value, f"{place}[{index}]") for index, value in enumerate(values)]


def _reason(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_reason(inner) for inner in error.exceptions)
    return str(error).strip("'\"")
