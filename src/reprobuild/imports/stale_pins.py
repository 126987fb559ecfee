"""Whether a lock of Poetry, PDM or Pipenv pins what the project file beside it asks for now. No network.

The versions are compared; where the lock has the hash of another project, also what is left over in it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from posixpath import normpath
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..errors import RequestError
from ..net.session import without_credentials
from ..request.model import DEFAULT_PYTHON, PYTHONS
from ..request.toml_reader import table_in
from .common import Imported, is_for, load_toml, marker_of, pin, requirement_of
from .direct_sources import git_address
from .project_files import read_text
from .target_system import target

_HINT = "update the lock with the tool that made it: `{}`"


class LockedPin(NamedTuple):
    """A package of a lock."""

    requirement: Requirement
    version: str
    ref: str | None = None
    """The branch, tag or commit that the project asked git for; None: the lock does not say."""

    def __str__(self) -> str:
        """Return its name for messages."""
        if self.requirement.url is None:
            return f"{self.requirement.name} {self.version}"
        return _plain_text(self.requirement) + (f" ({self.ref})" if self.ref else "")


def check_project(
    file: Path, project: Imported, pins: Iterable[LockedPin], python: str, requires: str
) -> tuple[str, ...]:
    """Compare a project with the pins of its lock for a Python.

    ``requires`` are the Pythons that the lock is for. Returns lines for the user. Raises `RequestError`.
    """
    command = f"{file.name.removesuffix('.lock')} lock"
    here = project.requires_python
    # Poetry's own table may allow fewer Pythons than the standard's.
    if requires and any(target(each).fits(requires) and not target(each).fits(here) for each in PYTHONS):
        raise RequestError(
            f"{file}: out of date: {project.origin} is for Python {here}, and the lock was made for "
            f"{requires}",
            hint=_HINT.format(command),
        )
    markers = target(python).markers
    instead = {canonicalize_name(Requirement(text).name) for text in project.overrides}
    asked = [
        (each, project.places.get(name, project.origin))
        for each in project.requirements
        if (name := canonicalize_name(each.name)) not in instead
        and is_for(each.marker, markers, f"{project.origin}: {each.name}")
    ]
    return _check_pins(file, pins, asked, command)


def _check_pins(
    file: Path,
    pins: Iterable[LockedPin],
    asked: Iterable[tuple[Requirement, str]],
    command: str,
) -> tuple[str, ...]:
    """Compare what a project asks for, and where, with what its lock pins.

    A line is returned for what has an address in the lock alone: another group of the project may name it.
    Raises `RequestError` for a requirement that the lock lacks, or has in a version that it excludes.
    """
    locked: dict[str, list[LockedPin]] = {}
    for each in pins:
        locked.setdefault(canonicalize_name(each.requirement.name), []).append(each)
    hint = _HINT.format(command)
    lines = []
    for wanted, where in asked:
        found = locked.get(canonicalize_name(wanted.name), [])
        if not found:
            raise RequestError(
                f"{file}: lacks {wanted.name}, which the project or a package in it asks for ({where})",
                hint=hint,
            )
        fitting = [each for each in found if _fits(wanted, each)]
        if fitting:
            if wanted.url is None and fitting[0].requirement.url is not None:
                lines.append(f"{file}: locked is {fitting[0]}; {where} asks for {_plain_text(wanted)}")
            continue
        had = ", ".join(map(str, found))
        raise RequestError(
            f"{file}: out of date: {where} asks for {_plain_text(wanted)}, and locked is {had}", hint=hint
        )
    return tuple(lines)


_DEFAULT_REFS = ("", "HEAD", "master")
"""What Poetry has written for a repository without a branch, tag or commit."""


def _fits(wanted: Requirement, locked: LockedPin) -> bool:
    url, version = locked.requirement.url, locked.version
    if wanted.url is not None:
        if url is None:
            return False
        (asked, ref), (place, _) = _address(wanted.url), _address(url)
        return asked == place and (locked.ref in (None, ref) or (not ref and locked.ref in _DEFAULT_REFS))
    return (not version and url is None) or (
        bool(version) and wanted.specifier.contains(version, prereleases=True)
    )


def _address(url: str) -> tuple[tuple[str, str, str], str]:
    """Return an address in comparable form, and the git branch, tag or commit in it."""
    parts = urlsplit(url.removeprefix("git+"))
    path, ref = unquote(parts.path), ""
    if url.startswith("git+") and "@" in path:
        path, _, ref = path.rpartition("@")
    if parts.scheme in ("", "file"):
        path = os.path.realpath(path)
    path = path.rstrip("/").removesuffix(".git")
    return (parts.hostname or "", path, _folder_in(url)), ref


def _folder_in(url: str) -> str:
    """Return the folder of an archive or repository that an address names; empty: its top."""
    under = parse_qs(urlsplit(url).fragment).get("subdirectory", [""])[0].strip("/")
    return normpath(under) if under else ""


def _plain_text(requirement: Requirement) -> str:
    if requirement.url is not None:
        under = _folder_in(requirement.url)
        url = without_credentials(requirement.url)
        return f"{requirement.name} @ {url}{f'#subdirectory={under}' if under else ''}"
    plain = Requirement(str(requirement))
    plain.marker = None
    return str(plain)


def changed_project(file: Path, metadata: Mapping[str, Any]) -> str | None:
    """Return the project file beside a poetry.lock or pdm.lock, where the lock was made for another content.

    None is also the answer to a lock that does not say.
    """
    project = file.with_name("pyproject.toml")
    data = load_toml(read_text(project), str(project))
    if file.name == "poetry.lock":
        own, contents = metadata.get("content-hash"), _contents_of_poetry(data)
    else:
        own, contents = metadata.get("content_hash"), _contents_of_pdm(data)
    texts = (json.dumps(each, sort_keys=True, default=str) for each in contents)
    hashes = {hashlib.sha256(text.encode()).hexdigest() for text in texts}
    return str(project) if own is not None and str(own).removeprefix("sha256:") not in hashes else None


def _contents_of_poetry(data: Mapping[str, Any]) -> Iterator[object]:
    """Yield what releases of Poetry take the hash of; with groups of the standard since 2.3.

    https://github.com/python-poetry/poetry/blob/main/src/poetry/packages/locker.py
    """
    project, poetry = table_in(data, "project"), table_in(table_in(data, "tool"), "poetry")
    legacy = ("dependencies", "source", "extras", "dev-dependencies")
    old = {key: poetry.get(key) for key in legacy}
    grouped = {"group": poetry["group"]} if "group" in poetry else {}
    yield old
    yield old | grouped
    standard = ("requires-python", "dependencies", "optional-dependencies")
    tables = {
        "project": {key: project[key] for key in standard if key in project},
        "dependency-groups": table_in(data, "dependency-groups"),
    }
    own = {key: value for key, value in (old | grouped).items() if value is not None}
    for names in (("project",), ("project", "dependency-groups")):
        yield {name: tables[name] for name in names if tables[name]} | {"tool": {"poetry": own}}


def _contents_of_pdm(data: Mapping[str, Any]) -> Iterator[object]:
    """Yield what releases of PDM take the hash of; with all of the resolution since 2.17.

    https://github.com/pdm-project/pdm/blob/main/src/pdm/project/project_file.py
    """
    project, pdm = table_in(data, "project"), table_in(table_in(data, "tool"), "pdm")
    groups: dict[str, list[Any]] = {}
    for table in (table_in(data, "dependency-groups"), table_in(pdm, "dev-dependencies")):
        for name, listed in table.items():
            groups.setdefault(canonicalize_name(name), []).extend(listed if isinstance(listed, list) else ())
    content = {
        "sources": pdm.get("source", []),
        "dependencies": project.get("dependencies", []),
        "optional-dependencies": project.get("optional-dependencies", {}),
        "requires-python": project.get("requires-python", ""),
    }
    resolution = table_in(pdm, "resolution")
    for development in (groups, table_in(pdm, "dev-dependencies")):
        own = content | {"dev-dependencies": development}
        yield own | {"resolution": resolution}
        yield own | {"overrides": resolution.get("overrides", {})}


def changed_since(file: Path, project: object) -> str:
    """Return the line on a project that has changed, and that its lock fits all the same."""
    return f"{file}: {project} has changed since: the versions fit what it asks for, the rest is unknown"


def out_of_date(file: Path, what: str) -> RequestError:
    """Return the error for a lock that was made for another project."""
    return RequestError(
        f"{file}: out of date: {what}", hint=_HINT.format(f"{file.name.removesuffix('.lock')} lock")
    )


def check_pipfile(
    file: Path, data: Mapping[str, Any], sections: Iterable[str], python: str | None
) -> tuple[str, ...]:
    """Compare a Pipfile.lock with the Pipfile beside it, if there is one; return a line if that has changed.

    Raises `RequestError` where the lock is not for what it asks for now.
    """
    pipfile = file.with_name("Pipfile")
    if not pipfile.is_file():
        return ()
    asked = load_toml(read_text(pipfile), str(pipfile))
    meta = table_in(data, "_meta")
    if table_in(meta, "hash").get("sha256") == _hash(asked):
        return ()
    mine, locked = (
        table_in(asked, "requires").get("python_version"),
        table_in(meta, "requires").get("python_version"),
    )
    if mine != locked:
        raise RequestError(
            f"{file}: out of date: {pipfile}: requires.python_version is {mine or 'not set'}, and the lock "
            f"was made for {locked or 'any'}",
            hint=_HINT.format("pipenv lock"),
        )
    markers = target(python or DEFAULT_PYTHON).markers
    for section in sections:
        key = {"default": "packages", "develop": "dev-packages"}.get(section, section)
        pins = [each for each, _ in _of_pipfile(table_in(data, section), f"{file}: {section}", markers)]
        _check_pins(
            file,
            [LockedPin(each, pin(each) or "") for each in pins],
            _of_pipfile(table_in(asked, key), f"{pipfile}: {key}", markers),
            "pipenv lock",
        )
    return (changed_since(file, pipfile),)


def _hash(pipfile: Mapping[str, Any]) -> str:
    """Return the hash of a Pipfile that Pipenv writes into its lock.

    https://github.com/sarugaku/plette/blob/master/src/plette/pipfiles.py
    """
    named = {"default": "packages", "develop": "dev-packages"}
    known = ("source", "packages", "dev-packages", "requires", "scripts", "pipfile", "pipenv", *named)
    content = {
        "_meta": {"sources": pipfile.get("source", []), "requires": pipfile.get("requires", {})},
        **{section: pipfile.get(key, {}) for section, key in named.items()},
        **{key: value for key, value in pipfile.items() if key not in known},
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


_MARKERS = (
    *("python_version", "python_full_version", "os_name", "sys_platform", "platform_machine"),
    *("platform_python_implementation", "platform_release", "platform_system", "platform_version"),
    *("implementation_name", "implementation_version"),
)
"""Keys of an entry that Pipenv reads as a marker each: https://pipenv.pypa.io/en/latest/specifiers.html."""


def _of_pipfile(
    entries: Mapping[str, Any], place: str, markers: Mapping[str, str]
) -> Iterator[tuple[Requirement, str]]:
    """Yield the requirements of a section that are for an environment, each with its place."""
    for name, entry in entries.items():
        table = entry if isinstance(entry, dict) else {"version": entry}
        spot = f"{place}.{name}"
        texts = [str(table["markers"])] if "markers" in table else []
        texts += [f"{key} {table[key]}" for key in _MARKERS if key in table]
        if not all(is_for(marker_of(text, spot), markers, spot) for text in texts):
            continue
        address = next((str(table[key]) for key in ("url", "path", "file") if key in table), None)
        address = git_address(str(table["git"])) if "git" in table else address
        version = str(table.get("version", "*")).strip()
        version = "*" if version[:1].isdigit() else version  # of one without an operator Pipenv takes any
        found = requirement_of(f"{name}{'' if address or version == '*' else version}", spot)
        found.url = address
        yield found, spot
