"""Dependencies from other places than an index, in the tables of uv, Poetry, PDM and Pipenv.

https://docs.astral.sh/uv/concepts/projects/dependencies/#dependency-sources and
https://python-poetry.org/docs/dependency-specification/.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..errors import RequestError
from .addresses import requirement_at
from .common import expect_table, is_for, load_toml, marker_of, requirement_of, table_of, texts_of
from .indexes import NamedIndexes, cuda_in, is_pytorch
from .project_files import read_text
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
        return requirement_of(
            f"{name} @ {git_address(values['git'])}{f'@{ref}' if ref else ''}{under}", place
        )
    url = values.get("url") or (values["file"] if "://" in values.get("file", "") else None)
    if url is not None:
        under = f"#subdirectory={values['subdirectory']}" if values.get("subdirectory") else ""
        return requirement_of(f"{name} @ {url}{under}", place)
    if (path := values.get("path") or values.get("file")) is not None:
        found = requirement_at(path if path.startswith((".", "/")) else f"./{path}", place, folder)
        return requirement_of(f"{name} @ {found.url}", place)
    return None


_KEYS = ("git", "rev", "revision", "ref", "tag", "branch", "subdirectory", "url", "path", "file")


def git_address(url: str) -> str:
    """Return a repository's address as PEP 508 has it; git's own short form means ssh."""
    scp = re.fullmatch(r"(?:([A-Za-z0-9._-]+)@)?([A-Za-z0-9.-]+):(?!//)(.+)", url)
    if scp is not None:
        return f"git+ssh://{scp[1] or 'git'}@{scp[2]}/{scp[3]}"
    return url if url.startswith("git+") else f"git+{url}"


class Stated(NamedTuple):
    """A requirement of a project as text, and where it is stated."""

    text: str
    place: str
    extra: str | None = None
    group: str | None = None


class UvSources:
    """``tool.uv.sources`` and ``tool.uv.index`` of a project, for a system."""

    def __init__(
        self,
        uv: Mapping[str, Any],
        file: Path,
        indexes: NamedIndexes,
        markers: Mapping[str, str],
        *,
        of_dependency: bool = False,
    ) -> None:
        """Take the indexes that count for all packages, unless ``of_dependency``. Raises `RequestError`."""
        self._file, self._indexes, self._markers = file, indexes, markers
        self._named: dict[str, str] = {}
        self._chosen: dict[str, str] = {}
        self.applied: list[str] = []
        listed = uv.get("index", [])
        for number, index in enumerate(listed if isinstance(listed, list) else [listed]):
            place = f"{file}: tool.uv.index[{number}]"
            if not isinstance(index, dict) or not isinstance(index.get("url"), str):
                raise RequestError(f"{place}: expected a table with a url")
            self._named.setdefault(str(index.get("name", "")), index["url"])
            if index.get("explicit") is not True and not of_dependency:
                option = "--index-url" if index.get("default") is True else "--extra-index-url"
                option = "--find-links" if index.get("format") == "flat" else option
                indexes.add(option, index["url"], place)
        for key in ("index-url", "extra-index-url", "find-links") if not of_dependency else ():
            values = uv.get(key, [])
            for value in values if isinstance(values, list) else [values]:
                indexes.add(f"--{key}", str(value), f"{file}: tool.uv.{key}")
        sources = {} if uv.get("no-sources") is True else table_of(uv, "sources", str(file))
        without = {canonicalize_name(name) for name in texts_of(uv, "no-sources-package", f"{file}: tool.uv")}
        self._entries = {canonicalize_name(str(name)): value for name, value in sources.items()}
        self._entries = {name: value for name, value in self._entries.items() if name not in without}

    def placed(self, stated: Stated) -> Requirement:
        """Return a requirement with the address that its source gives it. Raises `RequestError`.

        An entry with an extra or a group is for what is stated there alone, as uv has it.
        """
        requirement = requirement_of(stated.text, stated.place)
        name = canonicalize_name(requirement.name)
        entries = self._entries.get(name, [])
        for entry in entries if isinstance(entries, list) else [entries]:
            spot = f"{self._file}: tool.uv.sources.{name}"
            if unknown := sorted(expect_table(entry, spot).keys() - {*_ENTRY}):
                raise RequestError(f"{spot}.{unknown[0]}: unknown key", hint=f"known: {', '.join(_ENTRY)}")
            wrong = any(
                key in entry and canonicalize_name(str(entry[key])) != canonicalize_name(where or "")
                for key, where in (("extra", stated.extra), ("group", stated.group))
            )
            if wrong or not self._holds(entry.get("marker"), spot):
                continue
            return self._indexes.pinned(self._sourced(requirement, entry, spot))
        return self._indexes.pinned(requirement)

    def _sourced(self, requirement: Requirement, entry: Mapping[str, Any], spot: str) -> Requirement:
        name = canonicalize_name(requirement.name)
        if "index" in entry:
            self._choose(name, str(entry["index"]), entry, spot)
            return requirement
        if entry.get("workspace") is True:
            entry = {"path": str(_member(name, self._file, spot))}
        extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
        where = located(f"{requirement.name}{extras}", entry, spot, self._file.parent)
        if where is None:
            raise RequestError(f"{spot}: expected git, url, path, index or workspace")
        where.marker = requirement.marker
        return where

    def _choose(self, name: str, index: str, entry: Mapping[str, Any], spot: str) -> None:
        """Take the index of a package; PyTorch's own has one CUDA for all."""
        if (url := self._named.get(index)) is None:
            raise RequestError(f"{spot}: no index is called {index!r}")
        if self._chosen.setdefault(name, url) != url:
            raise RequestError(
                f"{spot}: {name} is asked for from two indexes: {self._chosen[name]} and {url}",
                hint="name only one of the extras and groups that ask for it",
            )
        self._indexes.add("--extra-index-url", url, spot)
        ways = {each: cuda for each, at in self._chosen.items() if is_pytorch(at) and (cuda := cuda_in(at))}
        if len({*ways.values()}) > 1:
            said = " and ".join(f"{each} for {cuda}" for each, cuda in sorted(ways.items()))
            raise RequestError(f"{spot}: PyTorch's index is asked for {said}", hint="name one CUDA for all")
        if name in ways:  # it goes before an index that counts for any package
            self._indexes.cuda = ways[name]
        where = [f"{key} {entry[key]}" for key in ("extra", "group") if key in entry]
        line = ": ".join([f"{self._file}", *where, f"{name} is asked for from the index {index}"])
        self.applied += [line] if line not in self.applied else []

    def _holds(self, marker: object, place: str) -> bool:
        spot = f"{place}.marker"
        return marker is None or is_for(marker_of(marker, spot), self._markers, spot)


_ENTRY = (
    *("git", "subdirectory", "rev", "tag", "branch", "lfs", "url", "path", "editable", "package", "index"),
    *("workspace", "marker", "extra", "group"),
)


def _member(name: str, file: Path, place: str) -> Path:
    """Return the folder of a member of the workspace that a project is in. Raises `RequestError`."""
    top = file.absolute().parent
    for root in [top, *top.parents][:_ABOVE]:
        project = root / "pyproject.toml"
        if not project.is_file():
            continue
        data = load_toml(read_text(project), str(project))
        workspace = table_of(
            table_of(table_of(data, "tool", str(project)), "uv", str(project)), "workspace", str(project)
        )
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
