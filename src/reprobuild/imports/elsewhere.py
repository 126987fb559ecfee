"""What a project takes from elsewhere than an index, in the tables of uv, Poetry, PDM and Pipenv.

https://docs.astral.sh/uv/concepts/projects/dependencies/#dependency-sources and
https://python-poetry.org/docs/dependency-specification/.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..errors import RequestError
from ..host.machine import architecture
from ..request.model import DEFAULT_PYTHON
from ..resolve.target import TargetPython
from .addresses import requirement_at
from .common import is_for, load_toml, read_text, requirement_of
from .indexes import NamedIndexes
from .projects import project_name

_ABOVE = 8
"""Folders above a project in which its workspace is looked for."""

_MOST_MEMBERS = 500


def located(name: str, table: Mapping[str, Any], place: str, folder: Path) -> Requirement | None:
    """Return the requirement with the address that a table gives it; None where it gives none.

    ``name`` may have extras. Raises `RequestError`.
    """
    values = {key: table[key] for key in _KEYS if key in table}
    for key, value in values.items():
        if not isinstance(value, str):
            raise RequestError(f"{place}.{key}: expected text")
    if "git" in values:
        ref = next(
            (values[key] for key in ("rev", "revision", "ref", "tag", "branch") if values.get(key)), ""
        )
        under = f"#subdirectory={values['subdirectory']}" if values.get("subdirectory") else ""
        return requirement_of(f"{name} @ {_git(values['git'])}{f'@{ref}' if ref else ''}{under}", place)
    url = values.get("url") or (values["file"] if "://" in values.get("file", "") else None)
    if url is not None:
        under = f"#subdirectory={values['subdirectory']}" if values.get("subdirectory") else ""
        return requirement_of(f"{name} @ {url}{under}", place)
    if (path := values.get("path") or values.get("file")) is not None:
        found = requirement_at(path if path.startswith((".", "/")) else f"./{path}", place, folder)
        return requirement_of(f"{name} @ {found.url}", place)
    return None


_KEYS = ("git", "rev", "revision", "ref", "tag", "branch", "subdirectory", "url", "path", "file")


def _git(url: str) -> str:
    """Return a repository's address as PEP 508 has it; git's own short form means ssh."""
    scp = re.fullmatch(r"(?:([A-Za-z0-9._-]+)@)?([A-Za-z0-9.-]+):(?!//)(.+)", url)
    if scp is not None:
        return f"git+ssh://{scp[1] or 'git'}@{scp[2]}/{scp[3]}"
    return url if url.startswith("git+") else f"git+{url}"


def uv_sources(
    requirements: list[tuple[str, str]], uv: Mapping[str, Any], file: Path, indexes: NamedIndexes
) -> list[Requirement]:
    """Return requirements, given as text and place, with what ``tool.uv`` says of where they come from.

    Raises `RequestError`.
    """
    sources = _table(uv, "sources", file)
    named: dict[str, str] = {}
    listed = uv.get("index", [])
    for number, index in enumerate(listed if isinstance(listed, list) else [listed]):
        place = f"{file}: tool.uv.index[{number}]"
        if not isinstance(index, dict) or not isinstance(index.get("url"), str):
            raise RequestError(f"{place}: expected a table with a url")
        named[str(index.get("name", ""))] = index["url"]
        if index.get("explicit") is not True:
            indexes.add(
                "--index-url" if index.get("default") is True else "--extra-index-url", index["url"], place
            )
    by_name = {canonicalize_name(str(name)): value for name, value in sources.items()}
    found = []
    for text, place in requirements:
        requirement = requirement_of(text, place)
        entries = by_name.get(canonicalize_name(requirement.name))
        if entries is not None:
            every = entries if isinstance(entries, list) else [entries]
            requirement = _sourced(requirement, every, named, file, indexes)
        found.append(indexes.pinned(requirement))
    return found


def _sourced(
    requirement: Requirement, entries: list[Any], named: Mapping[str, str], file: Path, indexes: NamedIndexes
) -> Requirement:
    """Return a requirement as the first of its sources that is for this system has it."""
    name = canonicalize_name(requirement.name)
    spot = f"{file}: tool.uv.sources.{name}"
    for entry in entries:
        if not isinstance(entry, dict):
            raise RequestError(f"{spot}: expected a table")
        if not _holds(entry.get("marker"), spot):
            continue
        if "index" in entry:
            if (url := named.get(str(entry["index"]))) is None:
                raise RequestError(f"{spot}: no index is called {entry['index']!r}")
            indexes.add("--extra-index-url", url, spot)
            return requirement
        place = {"path": str(_member(name, file, spot))} if entry.get("workspace") is True else entry
        extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
        where = located(f"{requirement.name}{extras}", place, spot, file.parent)
        if where is None:
            raise RequestError(f"{spot}: expected git, url, path, index or workspace")
        where.marker = requirement.marker
        return where
    return requirement


def _holds(marker: object, place: str) -> bool:
    if marker is None:
        return True
    markers = TargetPython(DEFAULT_PYTHON, architecture(), (2, 99)).markers
    try:
        return is_for(Marker(str(marker)), markers, f"{place}.marker")
    except InvalidMarker as error:
        raise RequestError(f"{place}.marker: {str(error).splitlines()[0]}") from None


def _member(name: str, file: Path, place: str) -> Path:
    """Return the folder of a member of the workspace that a project is in. Raises `RequestError`."""
    top = file.absolute().parent
    for root in [top, *top.parents][:_ABOVE]:
        project = root / "pyproject.toml"
        if not project.is_file():
            continue
        data = load_toml(read_text(project), str(project))
        workspace = _table(_table(_table(data, "tool", project), "uv", project), "workspace", project)
        if not workspace:
            continue
        for folder in [root, *_members(root, workspace, project)]:
            if canonicalize_name(project_name(folder)) == name:
                return folder
        raise RequestError(f"{place}: no member of the workspace in {project} is called {name}")
    raise RequestError(f"{place}: no pyproject.toml above has a workspace")


def _members(root: Path, workspace: Mapping[str, Any], project: Path) -> Iterator[Path]:
    left_out = {path for form in _forms(workspace, "exclude", project) for path in root.glob(form)}
    count = 0
    for form in _forms(workspace, "members", project):
        for path in sorted(root.glob(form)):
            count += 1
            if count > _MOST_MEMBERS:
                raise RequestError(f"{project}: tool.uv.workspace has more than {_MOST_MEMBERS} members")
            if path not in left_out and (path / "pyproject.toml").is_file():
                yield path


def _forms(workspace: Mapping[str, Any], key: str, project: Path) -> list[str]:
    forms = workspace.get(key, [])
    good = isinstance(forms, list) and all(
        isinstance(form, str) and form and not form.startswith("/") and ".." not in form.split("/")
        for form in forms
    )
    if not good:
        raise RequestError(f"{project}: tool.uv.workspace.{key}: expected a list of folders below it")
    return list(forms)


def _table(data: Mapping[str, Any], key: str, file: Path) -> Mapping[str, Any]:
    value = data.get(key, {})
    if not isinstance(value, dict):
        raise RequestError(f"{file}: {key}: expected a table")
    return value
