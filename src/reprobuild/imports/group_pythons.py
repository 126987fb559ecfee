"""Groups of a pyproject.toml with the Pythons that ``tool.uv.dependency-groups`` limits them to.

https://docs.astral.sh/uv/concepts/projects/dependencies/#group-requires-python
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from packaging.dependency_groups import resolve_dependency_groups
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from ..errors import RequestError
from ..request.toml_reader import table_in
from .pyproject import check_size


def checked_groups(data: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return the groups of a pyproject.toml by name. Raises `RequestError` for one that has no meaning."""
    listed = dict(table_in(data, "dependency-groups"))
    for group in listed:
        try:
            check_size(listed, group)
            resolve_dependency_groups(listed, group)
        except (LookupError, ValueError, TypeError, ExceptionGroup) as error:
            raise RequestError(f"{place}: dependency-groups.{group}: {error}") from None
    return {str(canonicalize_name(name)): entries for name, entries in listed.items()}


def group_entries(
    groups: Mapping[str, Any],
    group: str,
    settings: Mapping[str, Any],
    pythons: SpecifierSet = SpecifierSet(),  # noqa: B008 -- it does not change
) -> Iterator[tuple[object, SpecifierSet]]:
    """Yield the requirements of a group, with those that it includes, each with its Pythons."""
    pythons &= _own_pythons(group, settings)
    for entry in groups[group]:
        if isinstance(entry, dict):
            yield from group_entries(groups, _included(entry), settings, pythons)
        else:
            yield entry, pythons


def group_pythons(groups: Mapping[str, Any], group: str, settings: Mapping[str, Any]) -> SpecifierSet:
    """Return the Pythons that fit a group and all that it includes."""
    found = _own_pythons(group, settings)
    for entry in groups[group]:
        if isinstance(entry, dict):
            found &= group_pythons(groups, _included(entry), settings)
    return found


def _own_pythons(group: str, settings: Mapping[str, Any]) -> SpecifierSet:
    own = {str(canonicalize_name(name)): setting for name, setting in settings.items()}
    return SpecifierSet(str(table_in(own, group).get("requires-python", "")))


def _included(entry: Mapping[str, Any]) -> str:
    return str(canonicalize_name(entry["include-group"]))
