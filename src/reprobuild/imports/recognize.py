"""Import a team's own files as a request: their pins stay, the rest is resolved around them.

The keys of the request are made of it in `request_keys`; the hashes that the file names, which the lock made
from it must keep, are beside them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from ..errors import RequestError
from ..host.home import kind_of
from ..request.model import PYTHONS
from .common import Imported, load_toml, without_pins
from .conda import read_conda
from .other_files import (
    PYTHON_ENV,
    how_to_export,
    lines_on_debian,
    read_python_env,
    read_script,
    refuse_others,
)
from .pipfile_lock import read_pipfile_lock
from .poetry_pdm_locks import read_team_lock
from .project_files import of_project, read_text
from .pyproject import read_pyproject
from .requirements import of_compiled, read_requirements
from .setup_files import read_setup
from .target_system import allows, holds, noting_kernels, python_release, target
from .uv_and_pylock import read_pylock, read_uv_lock
from .uv_settings import workspace_root

__all__ = ["Imported", "read_import"]


def read_import(
    file: Path,
    *,
    extras: Sequence[str] = (),
    groups: Sequence[str] = (),
    hosts: Collection[str] = (),
    python: str | None = None,
    loosen: Collection[str] = (),
) -> Imported:
    """Read a team's file, whose name tells what it is.

    ``hosts`` are those whose indexes the file may name, ``python`` is the minor version that the user wants.
    ``loosen`` names packages whose versions need not be kept, and channels of conda's whose packages
    conda-forge shall give. Of the project that the file belongs to, and of nothing else, others are read too.
    Raises `RequestError` that names the file and the place.
    """
    with of_project(file), noting_kernels() as kernels:
        if kind_of(file) != "folder":
            read_text(file)  # whoever reads it in another way
            refuse_others(file)
        if file.suffix in (".yml", ".yaml") and file.name not in PYTHON_ENV:
            if extras or groups:
                raise RequestError(f"{file}: has no extras or groups")
            found = read_conda(file, hosts, loosen)
            channels = [name for name in loosen if name in found.replaced]
        else:
            found, channels = _read(file, extras, groups, hosts, python), []
            beside = found if python is not None else _with_python_version(file, found)
            if beside.python != found.python and file.name in _TEAM_LOCKS:
                # Their markers are for it too; the other kinds are read for it at once.
                again = _read(file, extras, groups, hosts, beside.python)
                beside = _with_python_version(file, replace(again, python=None))
            found = beside
        markers = target(found.python or PYTHONS[0]).markers
        for each in found.requirements:
            holds(each.marker, markers)
    lines = (
        f"{file}: the marker {each!r} asks for the kernel, which is that of the machine that runs the image: "
        "it is read as unknown, as uv does"
        for each in sorted(kernels)
    )
    found = replace(found, ignored=(*found.ignored, *lines))
    names = [name for name in loosen if name not in channels]
    return without_pins(found, names) if names else found


def pins_everything(file: Path) -> bool:
    """Whether a file is a lock of another tool, which has all that a package in it requires."""
    return file.name in ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock") or bool(
        _PYLOCK.fullmatch(file.name)
    )


_PYTHON_VERSION = re.compile(r"(?:cpython[-@]?)?(3\.\d{1,2}(?:\.\d+)?)")


def _with_python_version(file: Path, imported: Imported) -> Imported:
    """Return what is imported with the Python of the project's ``.python-version``, where that fits it.

    It is what uv, pyenv and others take (https://docs.astral.sh/uv/concepts/python-versions/).
    """
    if imported.python is not None or imported.conda or (python := _python_beside(file)) is None:
        return imported
    if not allows(imported.requires_python, python):
        return imported
    lines = []
    version_file, whole = _version_of(file) or (None, "")
    if whole not in (python, python_release(python)):
        lines = [f"{version_file}: {whole} chooses Python {python} alone, not its patch version"]
    return replace(imported, python=python, ignored=(*imported.ignored, *lines))


def _python_beside(file: Path) -> str | None:
    found = _version_of(file)
    return None if found is None else ".".join(found[1].split(".")[:2])


def _version_of(file: Path) -> tuple[Path, str] | None:
    """Return the ``.python-version`` beside a file, or in the root of uv's workspace, and what it says."""
    beside = file.parent / ".python-version"
    if not beside.is_file() and file.name == "pyproject.toml" and (root := workspace_root(file)) is not None:
        beside = root / ".python-version"
    if not beside.is_file():
        return None
    lines = (line.strip() for line in read_text(beside).splitlines())
    form = _PYTHON_VERSION.fullmatch(next((line for line in lines if line and line[0] != "#"), ""))
    return None if form is None else (beside, form[1])


def _read(
    file: Path, extras: Sequence[str], groups: Sequence[str], hosts: Collection[str], python: str | None
) -> Imported:
    is_pylock = _PYLOCK.fullmatch(file.name) is not None
    if extras and not is_pylock and file.name not in (*_WITH_EXTRAS, *_WITH_GROUPS):
        raise RequestError(f"{file}: has no extras; {', '.join((*_WITH_GROUPS, *_WITH_EXTRAS))} have")
    if groups and not is_pylock and file.name not in (*_WITH_GROUPS, "Pipfile.lock"):
        raise RequestError(f"{file}: has no groups; {', '.join(_WITH_GROUPS)} and Pipfile.lock have")
    if file.name == "pyproject.toml":
        return read_pyproject(file, extras, groups, hosts, python or _python_beside(file))
    if file.name in _WITH_EXTRAS:
        return _of_setuptools(file, extras, hosts, python or _python_beside(file))
    if file.name == "uv.lock":
        return read_uv_lock(file, extras, groups, hosts, python or _python_beside(file))
    if file.name in _TEAM_LOCKS:
        return read_team_lock(file, extras, groups, hosts, python)
    if file.name == "Pipfile.lock":
        return read_pipfile_lock(file, groups, hosts, python)
    return _read_by_form(file, extras, groups, hosts, python)


def _of_setuptools(file: Path, extras: Sequence[str], hosts: Collection[str], python: str | None) -> Imported:
    """Read a setup file, or the ``project`` table beside it, which takes precedence in setuptools.

    https://setuptools.pypa.io/en/latest/userguide/pyproject_config.html
    """
    beside = file.with_name("pyproject.toml")
    if beside.is_file():
        project = load_toml(read_text(beside), str(beside)).get("project")
        if isinstance(project, dict) and "dependencies" not in project.get("dynamic", ()):
            found = read_pyproject(beside, extras, (), hosts, python)
            line = f"{file}: {beside.name} beside it has the table project, which counts"
            return replace(found, applied=(line, *found.applied))
    return read_setup(file, extras, hosts)


def _read_by_form(
    file: Path, extras: Sequence[str], groups: Sequence[str], hosts: Collection[str], python: str | None
) -> Imported:
    if (form := _PYLOCK.fullmatch(file.name)) is not None:
        name = form[1] or ""
        return read_pylock(
            read_text(file), str(file), name, file.parent, extras=extras, groups=groups, python=python
        )
    if file.suffix in (".txt", ".in") or re.fullmatch(r"requirements.*\.lock", file.name):
        found = of_compiled(read_requirements(file, hosts), file, python)
        return replace(found, ignored=(*found.ignored, *lines_on_debian(file)))
    if file.name in PYTHON_ENV:
        return read_python_env(file, hosts)
    if file.suffix == ".py" and (script := read_script(file, hosts, python)) is not None:
        return script
    if file.is_dir():
        beside = [name for name in _OF_A_PROJECT if (file / name).is_file()]
        raise RequestError(
            f"{file}: is a folder",
            hint=f"name a file in it: {', '.join(str(file / name) for name in beside)}"
            if beside
            else "name a file",
        )
    raise RequestError(
        f"{file}: not a file that can be imported",
        hint=how_to_export(file)
        or "supported, by name: requirements.txt (any .txt or .in), pyproject.toml, setup.py, setup.cfg, "
        "pylock.toml, uv.lock, poetry.lock, pdm.lock, Pipfile.lock, python_env.yaml, environment.yml, "
        "conda-lock.yml (any .yml), and scripts with `# /// script`",
    )


_PYLOCK = re.compile(r"pylock\.(?:([^.]+)\.)?toml")
_WITH_GROUPS = ("pyproject.toml", "uv.lock", "poetry.lock", "pdm.lock")
_TEAM_LOCKS = ("poetry.lock", "pdm.lock")
_WITH_EXTRAS = ("setup.py", "setup.cfg")
_OF_A_PROJECT = (
    *("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "pyproject.toml", "requirements.txt"),
    *("environment.yml", "setup.cfg", "setup.py"),
)
