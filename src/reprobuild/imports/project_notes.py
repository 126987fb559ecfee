"""Notes on what a project's own tools would install in addition, or in its place."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from ..errors import RequestError
from ..request.toml_reader import table_in
from .common import load_toml
from .poetry import optional_groups, with_included
from .project_files import read_text
from .projects import environment_beside, requirements_beside

_EXPORTS = {
    "pixi": "`pixi workspace export conda-environment` writes an environment.yml, which --from takes",
    "conda-lock": "conda-lock also takes an environment.yml, which --from takes",
}
_PIP_TOOLS = (
    *("constraint", "pre", "extra", "all-extras", "find-links", "index-url", "extra-index-url"),
    *("pip-args", "unsafe-package", "upgrade-package", "src-file"),
    *("build-deps-for", "all-build-deps", "only-build-deps"),
)
"""Settings of pip-compile that decide packages: https://pip-tools.readthedocs.io/en/stable/cli/pip-compile/."""
_OF_AN_ENVIRONMENT = ("dependencies", "extra-dependencies", "features", "dependency-groups")


def lines_on_other_tools(tool: Mapping[str, Any], file: Path) -> Iterator[str]:
    """Yield a line for each table of another tool that names packages or indexes and is not read."""
    for name, how in _EXPORTS.items():
        if name in tool:
            yield f"{file}: tool.{name} is ignored: {how}"
    yield from _on_hatch(table_in(table_in(tool, "hatch"), "envs"), f"{file}: tool.hatch.envs")
    # It replaces tool.hatch: https://hatch.pypa.io/latest/intro/#configuration
    yield from _on_hatch(table_in(_beside(file, "hatch.toml"), "envs"), f"{file.parent / 'hatch.toml'}: envs")
    yield from _on_pip_tools(table_in(tool, "pip-tools"), f"{file}: tool.pip-tools")
    own = table_in(table_in(_beside(file, ".pip-tools.toml"), "tool"), "pip-tools")
    yield from _on_pip_tools(own, f"{file.parent / '.pip-tools.toml'}: tool.pip-tools")
    for command, options in table_in(table_in(tool, "pdm"), "options").items():
        if command in ("lock", "install", "sync", "update", "add") and options:
            yield f"{file}: tool.pdm.options.{command} is ignored: give reprobuild its own options"
    others = {
        "rye": ("sources", "lock-with-sources", "excluded-dependencies", "dev-dependencies"),
        "flit": ("metadata",),
    }
    for name, keys in others.items():
        for key in keys:
            if table_in(tool, name).get(key):
                yield f"{file}: tool.{name}.{key} is ignored: reprobuild does not use it"


def _beside(file: Path, name: str) -> Mapping[str, Any]:
    """Return the settings in another file of a project, empty where it has none."""
    other = file.parent / name
    return load_toml(read_text(other), str(other)) if other.is_file() else {}


def _on_hatch(environments: Mapping[str, Any], place: str) -> Iterator[str]:
    for name, environment in environments.items():
        found = [key for key in _OF_AN_ENVIRONMENT if isinstance(environment, dict) and environment.get(key)]
        if found:
            yield f"{place}.{name}.{found[0]} is ignored: only the project's own count"


def _on_pip_tools(table: Mapping[str, Any], place: str) -> Iterator[str]:
    for spot, settings in (
        (place, table),
        (f"{place}.compile", table_in(table, "compile")),
        (f"{place}.sync", table_in(table, "sync")),
    ):
        for key, value in settings.items():
            # pip-compile also takes underscores, and the plural of what may be given more than once.
            if key.replace("_", "-").rstrip("s") in {each.rstrip("s") for each in _PIP_TOOLS} and value:
                yield f"{spot}.{key} is ignored: reprobuild does not use it"


def check_flit(project: Mapping[str, Any], tool: Mapping[str, Any], file: Path) -> None:
    """Raise `RequestError` for requirements in Flit's own table, from before the standard had one."""
    metadata = table_in(table_in(tool, "flit"), "metadata")
    for key in ("requires", "dist-requires", "requires-extra"):
        if metadata.get(key) and not project:
            raise RequestError(
                f"{file}: tool.flit.metadata.{key}: requirements in Flit's old form are not read",
                hint="move them into project.dependencies; see https://flit.pypa.io/en/stable/pyproject_toml.html",
            )


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


def no_dependencies(file: Path, *, extras: Collection[str], groups: Collection[str]) -> RequestError:
    """Return the error for a project file without dependencies, with what could be imported instead."""
    beside = requirements_beside(file.parent)
    ways = []
    if beside:
        others = f" (beside it: {', '.join(beside[1:])})" if beside[1:] else ""
        ways.append(f"import a requirements file: --from {file.parent / beside[0]}{others}")
    else:
        found = environment_beside(file.parent)
        ways += [f"import what conda has: --from {file.parent / found[0]}"] if found else []
    ways += [f"name a group with --group: {', '.join(sorted(groups))}"] if groups else []
    ways += [f"name an extra with --extra: {', '.join(sorted(extras))}"] if extras else []
    return RequestError(
        f"{file}: no dependencies",
        hint="; or ".join(ways)
        or "write what the project needs into project.dependencies, or into a requirements.txt to import",
    )
