"""Import pylock.toml and uv.lock: pins, with the hashes of their wheels."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from packaging.pylock import Package, Pylock, PylockValidationError
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..errors import RequestError
from ..host.limits import guarded, of_steps
from ..host.process import named_when_stopped, run
from ..net.index_settings import PLAIN, uv_program
from ..net.session import scrub
from ..request.model import DEFAULT_PYTHON, PYTHONS
from ..request.toml_reader import table_in
from .common import Imported, is_for, load_toml, marker_of, minor_of
from .direct_sources import located
from .indexes import NamedIndexes, is_pytorch
from .project_files import read_text
from .project_notes import line_on_default_groups
from .stale_uv_locks import check_uv_lock
from .target_system import allows, holds
from .target_system import target as target_of

_PINNED = re.compile(r"^[A-Za-z0-9._\[\]-]+==[^\s=]", re.MULTILINE)


def _load(text: str, where: str) -> dict[str, Any]:
    """Read a lock's TOML. Raises `RequestError`, which tells it from what old releases of uv wrote."""
    try:
        return load_toml(text, where)
    except RequestError as error:
        if _PINNED.search(text):
            error.hint = "it has the lines of a requirements file: rename it to requirements.txt"
        raise


def read_pylock(
    text: str,
    where: str,
    name: str,
    folder: Path,
    *,
    hosts: Collection[str] = (),
    further: Collection[str] = (),
    extras: Collection[str] = (),
    groups: Collection[str] = (),
    python: str | None = None,
) -> Imported:
    """Read a PEP 751 lock of any tool; ``name`` is for the request, paths in it are relative to ``folder``.

    It is read for ``python``, or else for the first that it has wheels for: pip locks for its own alone.
    ``groups`` count beside those that the lock calls its default.
    ``further`` are indexes beside the usual one: where the lock takes something from one, that has to be set
    up, or its host to be among ``hosts``. Raises `RequestError` that names the packages of which the lock
    names no file.
    """
    data = _load(text, where)
    _fill_hashes(data)
    nowhere = _take_out_what_is_nowhere(data)
    try:
        lock = Pylock.from_dict(data)
    except (PylockValidationError, ValueError) as error:
        raise RequestError(f"{where}: not a PEP 751 lock: {_named(str(error), data)}") from None
    lock = _chosen(lock, extras, groups, where)
    only = minor_of(str(lock.requires_python or "")) or _only_python(lock)
    if python is None or not allows(lock.requires_python or "", python):
        python = only or next(iter(_allowed(lock)), DEFAULT_PYTHON)
    markers = target_of(python).markers
    _check_environment(lock, python, markers, where)
    # What is for another system alone need not be there.
    bare = {
        each
        for each, marker in nowhere
        if marker is None or is_for(marker_of(marker, spot := f"{where}: {each}"), markers, spot)
    }
    if bare:
        raise RequestError(
            f"{where}: names no wheel, source archive, repository or folder of {', '.join(sorted(bare))}",
            hint="update the lock with the tool that made it",
        )
    here = [p for p in lock.packages if is_for(p.marker, markers, f"{where}: {p.name}")]
    own = {id(package) for package in here}
    hashes: dict[str, set[str]] = {}
    pythons = [target_of(each).markers for each in PYTHONS]
    for package in lock.packages:
        # One for no Python here (`sys_platform == 'never'` takes a package out) may still come another way.
        if not any(holds(package.marker, each) for each in pythons):
            continue
        every = [wheel.hashes for wheel in package.wheels or ()]
        every += [] if package.sdist is None else [package.sdist.hashes]
        found = {each["sha256"].lower() for each in every if "sha256" in each}
        if found:
            hashes.setdefault(package.name, set()).update(found)
    indexes = NamedIndexes(hosts)
    for package in here:
        if package.index is not None and package.index.rstrip("/") in further:
            indexes.add("--extra-index-url", package.index, f"{where}: {package.name}")
    for package in lock.packages:
        urls = [wheel.url for wheel in package.wheels or () if wheel.url]
        if id(package) in own and package.name == "torch" and urls and all(is_pytorch(url) for url in urls):
            indexes.add("--index-url", urls[0], where)
    requirements = tuple(
        indexes.pinned(_requirement(package, f"{where}: packages ({package.name})", folder))
        for package in lock.packages
        if _of_index(package) or id(package) in own
    )
    named = sorted({*(lock.dependency_groups or ()), *(lock.extras or ())})
    if not any(holds(each.marker, each_python) for each in requirements for each_python in pythons):
        raise RequestError(
            f"{where}: no package is for Linux and what was asked for",
            hint="name a group or an extra: " + ", ".join(named)
            if named
            else "add what the project needs to it",
        )
    return Imported(
        origin=where,
        name=name or "pylock",
        requirements=requirements,
        hashes={package: frozenset(values) for package, values in sorted(hashes.items())},
        python=only,
        requires_python=str(lock.requires_python or ""),
        **indexes.found,
    )


def _allowed(lock: Pylock) -> list[str]:
    requires = lock.requires_python
    return [each for each in PYTHONS if allows(requires or "", each)]


def _only_python(lock: Pylock) -> str | None:
    """Return the Python that a lock has wheels for, where that is not the first that it allows."""
    first, *others = _allowed(lock) or [DEFAULT_PYTHON]
    return (
        None if _has_wheels(lock, first) else next((each for each in others if _has_wheels(lock, each)), None)
    )


def _has_wheels(lock: Pylock, python: str) -> bool:
    target = target_of(python)
    return all(
        target.best([wheel.filename for wheel in package.wheels]) is not None
        for package in lock.packages
        if package.wheels and package.sdist is None and holds(package.marker, target.markers)
    )


def _check_environment(lock: Pylock, python: str, markers: Mapping[str, str], where: str) -> None:
    """Raise `RequestError` for a lock that is for other systems, or has a package for other Pythons.

    https://packaging.python.org/en/latest/specifications/pylock-toml/#installation
    """
    known = lock.environments or ()
    if known and not any(is_for(marker, markers, f"{where}: environments") for marker in known):
        raise RequestError(
            f"{where}: environments: none is for {markers['sys_platform']} on {markers['platform_machine']} "
            f"with Python {python}",
            hint="lock it again with the tool that made it, for this system",
        )
    for package in lock.packages:
        requires = package.requires_python
        if allows(requires or "", python):
            continue
        if is_for(package.marker, markers, f"{where}: {package.name}"):
            raise RequestError(
                f"{where}: {package.name} {package.version or ''} requires Python {requires}, not {python}",
                hint="lock it again with the tool that made it, for this Python",
            )


def _chosen(lock: Pylock, extras: Collection[str], groups: Collection[str], where: str) -> Pylock:
    """Return a lock with markers evaluated for the requested extras and groups. Raises `RequestError`.

    https://packaging.python.org/en/latest/specifications/pylock-toml/#installation
    """
    wanted_extras = {canonicalize_name(extra) for extra in extras}
    wanted_groups = {canonicalize_name(group) for group in groups}
    for kind, names, known in (
        ("extra", wanted_extras, {*(lock.extras or ())}),
        ("group", wanted_groups, {*(lock.dependency_groups or ()), *(lock.default_groups or ())}),
    ):
        if unknown := sorted(names - known):
            has = ", ".join(sorted(known)) or "none"
            raise RequestError(f"{where}: no {kind} {unknown[0]!r}", hint=f"it has: {has}")
    chosen = {
        "extras": {str(name) for name in wanted_extras},
        "dependency_groups": {*map(str, wanted_groups), *map(str, lock.default_groups or ())},
    }

    def said(form: re.Match[str]) -> str:
        is_in = canonicalize_name(form[1]) in chosen[form[3]]
        return 'python_version >= "0"' if is_in is (form[2] is None) else 'python_version < "0"'

    packages = [
        package
        if package.marker is None
        else replace(package, marker=Marker(_MEMBER.sub(said, str(package.marker))))
        for package in lock.packages
    ]
    return replace(lock, packages=packages)


_MEMBER = re.compile(r'"([^"]*)" (not )?in (extras|dependency_groups)')


def read_uv_lock(
    file: Path,
    extras: Sequence[str],
    groups: Sequence[str],
    hosts: Collection[str] = (),
    python: str | None = None,
) -> Imported:
    """Read a ``uv.lock`` through uv's own export, which knows its forks, extras and groups. No network.

    Raises `RequestError`, also for one that is out of date.
    """
    read_text(file)
    folder = file.absolute().parent
    if not (folder / "pyproject.toml").is_file():
        raise RequestError(
            f"{file}: its pyproject.toml is not in the same folder",
            hint="a uv.lock is read together with its project",
        )
    command = [uv_program(), "export", "--frozen", "--format", "pylock.toml", "--no-emit-project"]
    command += ["--no-header", "--no-default-groups", "--quiet", "--directory", str(folder)]
    command += [word for extra in extras for word in ("--extra", extra)]
    command += [word for group in groups for word in ("--group", group)]
    env = {**os.environ, **PLAIN, "UV_OFFLINE": "1", "UV_PYTHON_DOWNLOADS": "never"}
    slow = "export it yourself: uv export --format pylock.toml"
    with (
        guarded(of_steps()) as guard,
        named_when_stopped(RequestError, f"{file}: uv did not read it", slow=slow),
    ):
        done = run(command, env=env, check=False, timeout=60, guard=guard)
    if done.returncode != 0:
        raise RequestError(
            f"{file}: uv cannot read it: {scrub(done.stderr.decode('utf-8', 'replace').strip())}",
            hint="if it lacks hashes, import what `uv export --no-hashes --no-emit-project -o "
            "requirements.txt` writes; else bring it up to date with `uv lock`",
        )
    project = load_toml(read_text(folder / "pyproject.toml"), str(folder / "pyproject.toml"))
    name = str(project.get("project", {}).get("name") or folder.name)
    unknown = check_uv_lock(file)
    found = read_pylock(
        done.stdout.decode(),
        str(file),
        name,
        folder,
        hosts=hosts,
        further=_further_indexes(project),
        python=python,
    )
    uv = table_in(table_in(project, "tool"), "uv")
    listed = [*table_in(project, "dependency-groups"), *(["dev"] if "dev-dependencies" in uv else [])]
    lines = line_on_default_groups({"uv": uv}, listed, groups, folder / "pyproject.toml")
    return replace(found, applied=(*found.applied, *lines), ignored=(*found.ignored, *unknown))


def _further_indexes(project: Mapping[str, Any]) -> set[str]:
    """Return the indexes that a pyproject.toml names beside the usual one."""
    try:
        listed = project.get("tool", {}).get("uv", {}).get("index", [])
        return {str(each["url"]).rstrip("/") for each in listed if each.get("default") is not True}
    except (AttributeError, LookupError, TypeError):
        return set()  # uv, which has read it, is the judge


def _fill_hashes(data: Mapping[str, Any]) -> None:
    """Add a hash that no file has to a file without hashes: uv writes none if the index had none."""
    packages = data.get("packages")
    for package in packages if isinstance(packages, list) else ():
        if isinstance(package, dict):
            wheels = package.get("wheels")
            for file in [*(wheels if isinstance(wheels, list) else ()), package.get("sdist")]:
                if isinstance(file, dict) and file.get("hashes", {}) == {}:
                    file["hashes"] = {"none": "0"}


def _take_out_what_is_nowhere(data: dict[str, Any]) -> list[tuple[str, object]]:
    """Remove the packages of which a lock names no file; return their names and markers.

    uv writes such of a fork for systems that it has no wheels for.
    """
    packages = data.get("packages")
    if not isinstance(packages, list):
        return []
    files = ("wheels", "sdist", "vcs", "directory", "archive")
    gone = [each for each in packages if isinstance(each, dict) and not any(each.get(key) for key in files)]
    data["packages"] = [each for each in packages if not any(each is one for one in gone)]
    return [(str(each.get("name", "")), each.get("marker")) for each in gone]


def _named(error: str, data: Mapping[str, Any]) -> str:
    """Put the name of a package behind its place in a list."""

    def name(form: re.Match[str]) -> str:
        try:
            return f"{form[0]} ({data['packages'][int(form[1])]['name']})"
        except (LookupError, TypeError):
            return form[0]

    return re.sub(r"packages\[([0-9]{1,6})\]", name, error)


def _of_index(package: Package) -> bool:
    """Whether it is a release with a wheel, or with a source archive to build one from."""
    return bool(package.wheels or package.sdist is not None) and package.version is not None


def _requirement(package: Package, place: str, folder: Path) -> Requirement:
    requirement: Requirement | None
    if _of_index(package):
        requirement = Requirement(f"{package.name}=={package.version}")
    else:
        requirement = located(package.name, _table(package, place), place, folder)
        if requirement is None:
            raise RequestError(f"{place}: its address is neither a url nor a path")
    requirement.marker = package.marker
    return requirement


def _table(package: Package, place: str) -> Mapping[str, str]:
    """Return where a package comes from in the keys of `located`."""
    found: Mapping[str, str | None] = {}
    if (vcs := package.vcs) is not None:
        if vcs.type != "git":
            raise RequestError(f"{place}: comes from {vcs.type}, and only git repositories can be locked")
        found = {"git": vcs.url, "rev": vcs.commit_id, "subdirectory": vcs.subdirectory}
    elif (directory := package.directory) is not None:
        found = {"path": directory.path}
    elif (archive := package.archive) is not None:
        said = {"sha256": archive.hashes.get("sha256"), "subdirectory": archive.subdirectory}
        fragment = "&".join(f"{key}={value}" for key, value in said.items() if value)
        url = f"{archive.url}#{fragment}" if archive.url and fragment else archive.url
        found = {"url": url, "path": archive.path}
    return {key: value for key, value in found.items() if value is not None}
