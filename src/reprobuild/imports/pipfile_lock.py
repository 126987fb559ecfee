"""Import Pipfile.lock: pins, with the hashes of their files.

Form: https://pipenv.pypa.io/en/latest/pipfile.html.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from ..errors import RequestError
from ..request.json_reader import load_json
from ..request.toml_reader import MOST_TEXT
from .common import (
    Imported,
    expect_table,
    expect_tables,
    marker_of,
    minor_of,
    requirement_of,
    table_of,
    texts_of,
)
from .direct_sources import located
from .indexes import NamedIndexes, cuda_in, is_pytorch
from .project_files import read_text
from .stale_pins import check_pipfile


def read_pipfile_lock(
    file: Path, groups: Sequence[str], hosts: Collection[str], python: str | None = None
) -> Imported:
    """Read a Pipfile.lock: its packages, and with ``--group dev`` those for development.

    Raises `RequestError` that names the package, or the key that rules out the Python.
    """
    data = _json(file)
    meta = table_of(data, "_meta", str(file))
    wanted = ["default"]
    for group in groups:
        section = "develop" if group == "dev" else group
        if section not in data or section in ("_meta", "default"):
            known = sorted(
                "dev" if name == "develop" else name for name in data if name not in ("_meta", "default")
            )
            raise RequestError(f"{file}: no group {group!r}", hint=f"it has: {', '.join(known) or 'none'}")
        wanted.append(section)
    indexes = NamedIndexes(hosts)
    sources = expect_tables(meta.get("sources", []), f"{file}: _meta.sources")
    tables = [table_of(data, section, str(file)) for section in wanted]
    own = {
        name: str(entry["index"])
        for table in tables
        for name, entry in table.items()
        if isinstance(entry, dict) and "index" in entry
    }
    for number, source in enumerate(sources):
        place = f"{file}: _meta.sources[{number}]"
        url = source.get("url")
        if not isinstance(url, str):
            raise RequestError(f"{place}.url: expected text")
        name = source.get("name")
        if number == 0 or name in own.values():
            indexes.add("--index-url" if number == 0 else "--extra-index-url", url, place)
        if name == own.get("torch") and is_pytorch(url):
            indexes.cuda = cuda_in(url) or indexes.cuda
    requirements: dict[str, Requirement] = {}
    hashes: dict[str, set[str]] = {}
    ignored: list[str] = []
    for section in wanted:
        for name, value in table_of(data, section, str(file)).items():
            place = f"{file}: {section}.{name}"
            table = expect_table({"version": value} if isinstance(value, str) else value, place)
            ignored += [
                f"{place}.{key} is ignored: reprobuild does not use it" for key in table if key not in _PIPENV
            ]
            requirement = indexes.pinned(_pipfile_entry(name, table, place, file.parent))
            requirements.setdefault(str(requirement), requirement)
            good = [h[7:].lower() for h in texts_of(table, "hashes", place) if h.startswith("sha256:")]
            if good:
                hashes.setdefault(canonicalize_name(name), set()).update(good)
    asked = expect_table(meta.get("requires", {}), f"{file}: _meta.requires")
    key = "python_version" if asked.get("python_version") else "python_full_version"
    named = asked.get(key)
    fits = (
        f"=={named}.*" if isinstance(named, str) and named.count(".") <= 1 else f"=={named}" if named else ""
    )
    try:
        requires = str(SpecifierSet(fits))
    except InvalidSpecifier as error:
        raise RequestError(f"{file}: _meta.requires: {error}") from None
    if python is not None and (only := minor_of(requires)) not in (None, python):
        raise RequestError(
            f"{file}: _meta.requires.{key} is {named}, which Python {python} does not fit",
            hint=f"give --python {only}; or change {key} in the Pipfile, and run `pipenv lock`",
        )
    return Imported(
        origin=str(file),
        name=file.absolute().parent.name,
        requirements=tuple(requirements[text] for text in sorted(requirements)),
        hashes={name: frozenset(values) for name, values in sorted(hashes.items())},
        python=minor_of(requires),
        requires_python=requires,
        ignored=(*ignored, *check_pipfile(file, data, wanted, python or minor_of(requires))),
        **indexes.found,
    )


_PIPENV = (
    *("version", "hashes", "markers", "index", "extras", "git", "ref", "editable", "path", "file"),
    *("subdirectory", "url"),
)
"""The keys of a package in a Pipfile.lock."""


def _pipfile_entry(name: str, table: Mapping[str, Any], place: str, folder: Path) -> Requirement:
    extras = ",".join(texts_of(table, "extras", place))
    full = f"{name}[{extras}]" if extras else name
    found = located(full, table, place, folder)
    if found is None:
        version = table.get("version", "")
        if not isinstance(version, str):
            raise RequestError(f"{place}.version: expected text")
        found = requirement_of(f"{full}{'' if version == '*' else version}", place)
    marker = table.get("markers")
    if marker is not None:
        found.marker = marker_of(marker, f"{place}.markers")
    return found


def _json(file: Path) -> Mapping[str, Any]:
    text = read_text(file)
    if len(text) > MOST_TEXT:
        raise RequestError(f"{file}: has more than {MOST_TEXT:,} characters")
    try:
        return expect_table(load_json(text), str(file))
    except ValueError as error:
        raise RequestError(f"{file}: not valid JSON: {error}") from None
