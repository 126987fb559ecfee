"""The files from which uv takes the settings of a project: its own, its workspace's, or the nearest above.

https://docs.astral.sh/uv/concepts/configuration-files/
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..host.home import kind_of
from ..request.toml_reader import table_in
from .common import load_toml
from .project_files import is_inside, read_text

_ROOT_ONLY = (
    *("constraint-dependencies", "override-dependencies", "exclude-dependencies", "environments"),
    *("build-constraint-dependencies", "required-environments"),
)
"""uv reads them in the root of a workspace alone, as it does ``conflicts`` of all members."""
_OF_THE_PROJECT = (
    *("sources", "workspace", *_ROOT_ONLY, "conflicts"),
    *("dev-dependencies", "default-groups", "dependency-groups", "managed", "package"),
)
"""Keys that uv reads from the project's own pyproject.toml only."""
_ABOVE = 8


def with_settings(uv: Mapping[str, Any], file: Path) -> tuple[Mapping[str, Any], Path | None]:
    """Return the ``tool.uv`` of a project as uv has it, and the other file that its settings are from.

    A member of a workspace has the sources, the rules and the settings of the root, and of its own table the
    sources alone. The settings, such as indexes and ``exclude-newer``, are those of the first folder from
    there up that has any: in a uv.toml, else in the ``tool.uv`` of a pyproject.toml. Indexes of another table
    count for the sources that name them.
    """
    if file.name != "pyproject.toml":
        return uv, None  # a script's
    found = None if "workspace" in uv else _workspace_of(file)
    top, above = (file.absolute().parent, uv) if found is None else found
    own = {key: value for key, value in uv.items() if key in _OF_THE_PROJECT}
    if found is not None:
        own = {key: value for key, value in own.items() if key not in _ROOT_ONLY}
        own |= {key: above[key] for key in _ROOT_ONLY if key in above}
        own["sources"] = {**table_in(above, "sources"), **table_in(uv, "sources")}
    origin, settings = _settings_from(top) or (file, {})
    tables = [uv] if found is None else [uv, above]
    is_own = origin.name == "pyproject.toml" and origin.parent == top
    named = [
        {key: value for key, value in index.items() if key != "default"} | {"explicit": True}
        for table in (tables[:-1] if is_own else tables)
        for index in _indexes(table)
        if isinstance(index, dict)
    ]
    merged = own | {key: value for key, value in settings.items() if key not in _OF_THE_PROJECT}
    if named or "index" in settings:
        merged["index"] = (
            [*named, *_indexes(settings)] if found is not None else [*_indexes(settings), *named]
        )
    is_other = origin.absolute() != file.absolute() and bool(settings.keys() - {*_OF_THE_PROJECT})
    return merged, origin if is_other else None


def unread_settings(file: Path) -> Path | None:
    """Return the uv.toml outside of the repository from which uv takes a project's settings; None: none."""
    if file.name != "pyproject.toml":
        return None  # a script's
    top = workspace_root(file) or file.absolute().parent
    if _settings_from(top) is not None:
        return None
    outside = (folder / "uv.toml" for folder in (top, *top.parents))
    return next((path for path in outside if not is_inside(path) and kind_of(path) == "file"), None)


def workspace_root(file: Path) -> Path | None:
    """Return the folder of uv's workspace of which the project of a file is a member; None: of none."""
    found = _workspace_of(file)
    return None if found is None else found[0]


def _indexes(table: Mapping[str, Any]) -> list[Any]:
    found = table.get("index", [])
    return found if isinstance(found, list) else []


def _settings_from(top: Path) -> tuple[Path, Mapping[str, Any]] | None:
    """Return the settings of the first folder from this one up that has any, and their file."""
    for folder in (top, *top.parents):
        for name in ("uv.toml", "pyproject.toml"):
            path = folder / name
            if not is_inside(path):
                return None
            if kind_of(path) != "file":
                continue
            data = load_toml(read_text(path), str(path))
            if name == "uv.toml":
                return path, data
            if "uv" in table_in(data, "tool"):
                return path, table_in(table_in(data, "tool"), "uv")
    return None


def _workspace_of(file: Path) -> tuple[Path, Mapping[str, Any]] | None:
    """Return the root of the workspace that a file's project is a member of, and the root's ``tool.uv``."""
    top = file.absolute().parent
    for root in list(top.parents)[:_ABOVE]:
        project = root / "pyproject.toml"
        if not project.is_file():
            continue
        data = load_toml(read_text(project), str(project))
        above = data.get("tool", {}).get("uv", {}) if isinstance(data.get("tool"), dict) else {}
        workspace = above.get("workspace") if isinstance(above, dict) else None
        if not isinstance(workspace, dict):
            continue
        members, excluded = workspace.get("members", []), workspace.get("exclude", [])
        relative = top.relative_to(root)
        is_member = _matches(relative, members) and not _matches(relative, excluded)
        return (root, above) if is_member else None
    return None


def _matches(path: Path, forms: object) -> bool:
    return isinstance(forms, list) and any(isinstance(form, str) and path.match(form) for form in forms)
