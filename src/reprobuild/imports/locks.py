"""pylock.toml and uv.lock → their pins, with the hashes of their wheels."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import uv
from packaging.pylock import Package, Pylock, PylockValidationError
from packaging.requirements import Requirement

from ..errors import HostError, RequestError
from ..host.process import ProcessTimeout, run
from ..net.debian_mirrors import architecture
from ..net.session import scrub
from ..request.model import DEFAULT_PYTHON
from ..resolve.target import TargetPython
from .common import Imported, is_for, load_toml, minor_of, read_text, requirement_of
from .indexes import NamedIndexes, is_pytorch


def read_pylock(text: str, where: str, name: str) -> Imported:
    """Read a PEP 751 lock of any tool; ``name`` is for the request.

    Raises `RequestError` that names the packages without a wheel: source distributions cannot be locked.
    """
    data = load_toml(text, where)
    _fill_hashes(data)
    try:
        lock = Pylock.from_dict(data)
    except (PylockValidationError, ValueError) as error:
        raise RequestError(f"{where}: not a PEP 751 lock: {_named(str(error), data)}") from None
    python = minor_of(str(lock.requires_python or "")) or DEFAULT_PYTHON
    markers = TargetPython(python, architecture(), (2, 99)).markers

    def bare_here(package: Package) -> bool:
        return not _of_index(package) and not _has_wheel(package)

    bare = [
        str(package.name)
        for package in lock.packages
        if bare_here(package)
        # What is for another system alone need not be had.
        and is_for(package.marker, markers, f"{where}: {package.name}")
    ]
    if bare:
        raise RequestError(
            f"{where}: no wheel and no source archive of {', '.join(sorted(set(bare)))}",
            hint="name a version of an index for each, in place of a folder or repository",
        )
    hashes: dict[str, set[str]] = {}
    for package in lock.packages:
        every = [wheel.hashes for wheel in package.wheels or ()]
        every += [] if package.sdist is None else [package.sdist.hashes]
        found = {each["sha256"].lower() for each in every if "sha256" in each}
        if found:
            hashes.setdefault(package.name, set()).update(found)
    indexes = NamedIndexes()
    for package in lock.packages:
        urls = [wheel.url for wheel in package.wheels or () if wheel.url]
        here = is_for(package.marker, markers, f"{where}: {package.name}")
        if here and package.name == "torch" and urls and all(is_pytorch(url) for url in urls):
            indexes.add("--index-url", urls[0], where)
    return Imported(
        origin=where,
        name=name or "pylock",
        requirements=tuple(
            indexes.pinned(_requirement(package, f"{where}: packages ({package.name})"))
            for package in lock.packages
            if not bare_here(package)
        ),
        hashes={package: frozenset(values) for package, values in sorted(hashes.items())},
        python=minor_of(str(lock.requires_python or "")),
        requires_python=str(lock.requires_python or ""),
        **indexes.found,
    )


def read_uv_lock(file: Path, extras: Sequence[str], groups: Sequence[str]) -> Imported:
    """Read a ``uv.lock`` through uv's own export, which knows its forks, extras and groups. No network."""
    read_text(file)
    folder = file.absolute().parent
    if not (folder / "pyproject.toml").is_file():
        raise RequestError(
            f"{file}: its pyproject.toml is not in the same folder",
            hint="a uv.lock is read together with its project",
        )
    try:
        program = uv.find_uv_bin()
    except FileNotFoundError:
        raise HostError("the program uv is not installed", hint="pip install uv") from None
    command = [program, "export", "--frozen", "--format", "pylock.toml", "--no-emit-project", "--no-header"]
    command += ["--no-default-groups", "--quiet", "--directory", str(folder)]
    command += [word for extra in extras for word in ("--extra", extra)]
    command += [word for group in groups for word in ("--group", group)]
    env = {
        **os.environ,
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "UV_OFFLINE": "1",
        "UV_PYTHON_DOWNLOADS": "never",
    }
    try:
        done = run(command, env=env, check=False, timeout=60)
    except ProcessTimeout as error:
        raise RequestError(f"{file}: uv cannot read it: {error.message}", hint=error.hint) from None
    if done.returncode != 0:
        raise RequestError(
            f"{file}: uv cannot read it: {scrub(done.stderr.decode('utf-8', 'replace').strip())}"
        )
    project = load_toml(read_text(folder / "pyproject.toml"), str(folder / "pyproject.toml"))
    name = str(project.get("project", {}).get("name") or folder.name)
    return read_pylock(done.stdout.decode(), str(file), name)


def _fill_hashes(data: Mapping[str, Any]) -> None:
    """Give a file without hashes one that none has: uv writes none where the index had none."""
    packages = data.get("packages")
    for package in packages if isinstance(packages, list) else ():
        if isinstance(package, dict):
            wheels = package.get("wheels")
            for file in [*(wheels if isinstance(wheels, list) else ()), package.get("sdist")]:
                if isinstance(file, dict) and file.get("hashes", {}) == {}:
                    file["hashes"] = {"none": "0"}


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


def _has_wheel(package: Package) -> bool:
    archive = package.archive
    return archive is not None and (archive.url or "").partition("#")[0].endswith(".whl")


def _requirement(package: Package, place: str) -> Requirement:
    if _of_index(package):
        requirement = Requirement(f"{package.name}=={package.version}")
    else:
        assert package.archive is not None
        sha256 = package.archive.hashes.get("sha256")
        requirement = requirement_of(
            f"{package.name} @ {package.archive.url}{f'#sha256={sha256}' if sha256 else ''}", place
        )
    requirement.marker = package.marker
    return requirement
