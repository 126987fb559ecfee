"""The table ``tool.pdm``: https://pdm-project.org/latest/reference/pep621/ and …/latest/usage/dependency/."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import RequestError
from .addresses import requirement_at
from .common import load_toml, requirement_of, table_of
from .indexes import NamedIndexes
from .project_files import read_text
from .uv_table import NEVER, Rules

_EDITABLE = re.compile(r"(?:-e|--editable)[\s=]\s*(\S.*)")
_WITHOUT_EFFECT = (
    *("dev-dependencies", "version", "build", "scripts", "options", "publish", "plugins", "distribution"),
    *("package-type", "strategy", "ignore_package_warnings", "python", "cache", "lock"),
)
"""Keys that do not decide which packages a project gets, or that are read elsewhere."""


def pdm_rules(pdm: Mapping[str, Any], file: Path, indexes: NamedIndexes) -> Rules:
    """Return the rules of a ``tool.pdm``, and add its indexes. Raises `RequestError`."""
    place = f"{file}: tool.pdm"
    ignored = []
    for number, source in enumerate(_list(pdm.get("source", []), f"{place}.source")):
        spot = f"{place}.source[{number}]"
        if not isinstance(source, dict) or not isinstance(source.get("url"), str):
            raise RequestError(f"{spot}: expected a table with a url")
        kind = "--index-url" if source.get("name") == "pypi" else "--extra-index-url"
        indexes.add("--find-links" if source.get("type") == "find_links" else kind, source["url"], spot)
        ignored += [
            f"{spot}.{key} is ignored: the first index that knows a package supplies it"
            for key in ("include_packages", "exclude_packages")
            if source.get(key)
        ]
    listed = {source.get("name") for source in pdm.get("source", [])}
    _add_configured(file, listed, indexes)
    resolution = pdm.get("resolution", {})
    if not isinstance(resolution, dict) or not isinstance(resolution.get("overrides", {}), dict):
        raise RequestError(f"{place}.resolution: expected tables")
    overrides = [
        _override(str(name), str(value), f"{place}.resolution.overrides.{name}")
        for name, value in resolution.get("overrides", {}).items()
    ]
    overrides += [
        f"{name} ; {NEVER}" for name in _list(resolution.get("excludes", []), f"{place}.resolution")
    ]
    known = ("overrides", "excludes")
    ignored += [
        f"{place}.resolution.{key} is ignored: reprobuild does not use it"
        for key, value in resolution.items()
        if key not in known and value is not False
    ]
    ignored += [
        f"{place}.{key} is ignored: reprobuild does not use it"
        for key in pdm
        if key not in (*_WITHOUT_EFFECT, "source", "resolution")
    ]
    return Rules(overrides=tuple(overrides), ignored=tuple(ignored)).with_torch(place)


def dev_groups(pdm: Mapping[str, Any], groups: Sequence[str], file: Path) -> dict[str, Any]:
    """Return PDM's own groups, those of ``groups`` with ``-e ADDRESS`` in the standard's form.

    Raises `RequestError`.
    """
    found = dict(table_of(pdm, "dev-dependencies", f"{file}: tool.pdm"))
    for name in {*found} & {*groups}:
        if isinstance(found[name], list):
            place = f"{file}: tool.pdm.dev-dependencies.{name}"
            found[name] = [
                str(requirement_at(form[1], f"{place}[{number}]", file.parent))
                if isinstance(line, str) and (form := _EDITABLE.fullmatch(line))
                else line
                for number, line in enumerate(found[name])
            ]
    return found


def _add_configured(file: Path, known: Collection[object], indexes: NamedIndexes) -> None:
    """Add the indexes of the pdm.toml beside a project, but for names that the project's own sources have.

    https://pdm-project.org/latest/usage/config/#configure-the-package-indexes
    """
    config = file.parent / "pdm.toml"
    if file.name != "pyproject.toml" or not config.is_file():
        return
    pypi = table_of(load_toml(read_text(config), str(config)), "pypi", str(config))
    for name, source in {"pypi": pypi, **pypi}.items():
        if name not in known and isinstance(source, dict) and isinstance(source.get("url"), str):
            own = "--index-url" if name == "pypi" else "--extra-index-url"
            option = "--find-links" if source.get("type") == "find_links" else own
            spot = f"{config}: pypi.url" if name == "pypi" else f"{config}: pypi.{name}.url"
            indexes.add(option, source["url"], spot)


def _override(name: str, value: str, place: str) -> str:
    if "://" in value:
        return str(requirement_of(f"{name} @ {value}", place))
    return str(requirement_of(f"{name}=={value}" if re.match(r"[0-9]", value) else f"{name}{value}", place))


def _list(value: object, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise RequestError(f"{place}: expected a list")
    return value
