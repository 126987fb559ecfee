"""Notes on what a project's own tools would install in addition."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from ..errors import RequestError
from ..request.toml_reader import table_in
from .poetry import optional_groups, with_included

_EXPORTS = {
    "pixi": "`pixi workspace export conda-environment` writes an environment.yml, which --from takes",
    "conda-lock": "conda-lock also takes an environment.yml, which --from takes",
}
_OF_AN_ENVIRONMENT = ("dependencies", "extra-dependencies", "features", "dependency-groups")


def lines_on_other_tools(tool: Mapping[str, Any], file: Path) -> Iterator[str]:
    """Yield a line for each table of another tool that names packages or indexes and is not read."""
    for name, how in _EXPORTS.items():
        if name in tool:
            yield f"{file}: tool.{name} is ignored: {how}"
    environments = table_in(table_in(tool, "hatch"), "envs")
    for name, environment in environments.items():
        found = [key for key in _OF_AN_ENVIRONMENT if isinstance(environment, dict) and environment.get(key)]
        if found:
            yield f"{file}: tool.hatch.envs.{name}.{found[0]} is ignored: only the project's own count"
    others = {
        "rye": ("sources", "lock-with-sources", "excluded-dependencies"),
        "pip-tools": ("constraint", "pre", "extra", "all-extras", "find-links", "index-url"),
        "flit": ("metadata",),
    }
    for name, keys in others.items():
        for key in keys:
            if table_in(tool, name).get(key):
                yield f"{file}: tool.{name}.{key} is ignored: reprobuild does not use it"


def line_on_default_groups(
    tool: Mapping[str, Any], listed: Collection[str], groups: Collection[str], file: Path
) -> Iterator[str]:
    """Yield a line for the groups that the project's tool installs unasked, of those ``listed``."""
    uv, poetry = table_in(tool, "uv"), table_in(tool, "poetry")
    asked = {*with_included(poetry, [*groups])}
    known: dict[str, str] = {canonicalize_name(group): group for group in listed}
    if "poetry" in tool:
        command, default = "poetry install", [name for name in known if name not in optional_groups(poetry)]
    elif "pdm" in tool:
        command, default = "pdm install", [*known]
    elif uv or (file.parent / "uv.lock").is_file():
        value = uv.get("default-groups", ["dev"])
        if value != "all" and not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
            raise RequestError(f'{file}: tool.uv.default-groups: expected a list of names, or "all"')
        default = [*known] if value == "all" else [canonicalize_name(each) for each in value]
        command = "uv sync"
    else:
        return
    out = [known[name] for name in dict.fromkeys(default) if name in known and name not in asked]
    if out:
        said = "a group that" if len(out) == 1 else "groups that"
        yield (
            f"{file}: without {', '.join(out)}, {said} `{command}` installs: "
            f"{' '.join(f'--group {name}' for name in out)} includes {'it' if len(out) == 1 else 'them'}"
        )
