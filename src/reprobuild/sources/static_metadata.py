"""Requirements of a source archive, where its metadata is static (PEP 643, PEP 621). Pure.

Nothing here is trusted: the wheel that the archive is built to is held against it (`resolve.sources`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from packaging.metadata import parse_email
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from ..errors import BuildError
from ..request.toml_reader import load_toml
from .source_archive import Told

_STATIC = Version("2.2")
"""The version of metadata from which a field that is not ``Dynamic`` is the same in every wheel (PEP 643)."""

_FIELDS = frozenset({"name", "version", "requires-dist", "requires-python", "provides-extra"})
_KEYS = frozenset({"dependencies", "optional-dependencies", "requires-python"})
"""The same in the table ``project`` of pyproject.toml (PEP 621)."""


def static_metadata(told: Told, name: str, version: str) -> bytes | None:
    """Return the metadata of the wheels of a release, or None where only a build can tell them.

    ``name`` is normalised. They are the fields that decide what is installed beside it, and no others.
    Raises `BuildError` where the archive is of another package or version.
    """
    for file, content, read in (
        ("PKG-INFO", told.pkg_info, _of_pkg_info),
        ("pyproject.toml", told.pyproject, _of_pyproject),
    ):
        found = None if content is None else read(content)
        if found is None:
            continue
        own_name, own_version, lines = found
        if canonicalize_name(own_name) != name or (own_version and not _same(own_version, version)):
            raise BuildError(
                f"{name} {version}: the {file} in its source archive is that of "
                f"{' '.join(f'{own_name} {own_version}'.split())[:100]}",
                hint="ask for another version of the package, or report it to its maintainers",
            )
        return written(name, version, lines)
    return None


def requirements_of(metadata: bytes) -> tuple[str, frozenset[str]]:
    """Return what metadata requires of Python and of packages, in a form that can be compared."""
    raw, _ = parse_email(metadata)
    try:
        python = str(SpecifierSet(raw.get("requires_python", "")))
    except InvalidSpecifier:
        python = raw.get("requires_python", "")
    return python, frozenset(_plain(line) for line in raw.get("requires_dist", []))


def written(name: str, version: str, lines: Iterable[str]) -> bytes:
    """Return metadata of some fields."""
    head = ("Metadata-Version: 2.2", f"Name: {name}", f"Version: {version}")
    return "".join(f"{line}\n" for line in (*head, *lines)).encode()


_Found = tuple[str, str, list[str]]
"""The name, the version (empty: not said here), the lines of the fields that count."""


def _of_pkg_info(content: bytes) -> _Found | None:
    raw, _ = parse_email(content)
    try:
        if Version(raw.get("metadata_version", "0")) < _STATIC:
            return None
    except InvalidVersion:
        return None
    if _FIELDS & {field.lower() for field in raw.get("dynamic", [])}:
        return None
    return _found(
        raw.get("name", ""),
        raw.get("version", ""),
        raw.get("requires_python", ""),
        raw.get("requires_dist", []),
        raw.get("provides_extra", []),
    )


def _of_pyproject(content: bytes) -> _Found | None:
    try:
        project = load_toml(content.decode("utf-8")).get("project")
    except (ValueError, RecursionError):
        return None  # the build says what is wrong with it
    if not isinstance(project, dict):
        return None
    dynamic = project.get("dynamic", [])
    if not isinstance(dynamic, list) or _KEYS & {each for each in dynamic if isinstance(each, str)}:
        return None
    said = [
        project.get(key, default)
        for key, default in (("name", None), ("version", ""), ("requires-python", ""))
    ]
    # Without dependencies it is not static: setup.py may have them, whatever PEP 621 wants.
    required, extras = _texts(project.get("dependencies")), _extras(project.get("optional-dependencies", {}))
    if required is None or extras is None or not all(isinstance(each, str) for each in said):
        return None
    name, version, python = map(str, said)
    return _found(name, version, python, [*required, *extras[1]], extras[0])


def _extras(optional: object) -> tuple[list[str], list[str]] | None:
    """Return the extras, and what they require as lines with a marker."""
    if not isinstance(optional, Mapping):
        return None
    names, lines = [], []
    for extra, value in optional.items():
        if (required := _texts(value)) is None:
            return None
        names.append(str(extra))
        for text in required:
            try:
                requirement = Requirement(text)
            except InvalidRequirement:
                return None
            own = "" if requirement.marker is None else f"({requirement.marker}) and "
            requirement.marker = None
            # The blank ends an address, which may itself have a semicolon.
            lines.append(f'{requirement} ; {own}extra == "{canonicalize_name(str(extra))}"')
    return names, lines


def _found(
    name: str, version: str, python: str, required: Iterable[str], extras: Iterable[str]
) -> _Found | None:
    lines = []
    try:
        if python:
            lines.append(f"Requires-Python: {SpecifierSet(python)}")
        lines += [f"Requires-Dist: {Requirement(text)}" for text in required]
    except (InvalidSpecifier, InvalidRequirement):
        return None
    lines += [f"Provides-Extra: {canonicalize_name(extra)}" for extra in extras if extra.isprintable()]
    return name, version, lines


def _texts(value: object) -> list[str] | None:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        return None
    texts: list[Any] = value
    return texts


def _plain(line: str) -> str:
    try:
        return str(Requirement(line))
    except InvalidRequirement:
        return line


def _same(one: str, other: str) -> bool:
    try:
        return Version(one) == Version(other)
    except InvalidVersion:
        return False
