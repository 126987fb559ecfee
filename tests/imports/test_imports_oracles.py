"""Projects of PDM, Poetry, Pipenv and pip, by chance: we lock what the tool itself resolves, or its lock has.

Each tool is installed from the package registry, in an environment of its own.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from reprobuild.errors import RequestError, ResolveError
from reprobuild.imports.recognize import read_import
from reprobuild.imports.request_keys import request_table
from reprobuild.net.session import session
from reprobuild.request.model import Request
from reprobuild.resolve.target import TargetPython
from reprobuild.resolve.uv_command import resolve_python
from support.index import Index
from support.resolving import resolution

pytestmark = pytest.mark.slow
pytest_plugins = ["support.family"]
EXAMPLES = int(os.environ.get("REPROBUILD_TEST_EXAMPLES", "1000"))
NAMES = ("a", "b", "c", "d", "e-x")
PYTHON = f"3.{sys.version_info.minor}"
TARGET = TargetPython(PYTHON, "amd64", (2, 36))
LIMITS = ("", "", ">=2", "<3", "==2", "!=3", "~=2.0")
MARKERS = (
    *[""] * 3,
    " ; python_version >= '3.8'",
    " ; python_version < '3.8'",
    " ; sys_platform == 'linux' or extra == 'never'",
)
Found = dict[str, str] | None

Install = Callable[..., Path]


@pytest.fixture(scope="module")
def install(tmp_path_factory: pytest.TempPathFactory) -> Install:
    """Install packages of a tool in an environment; returns its folder of programs."""

    def installer(*packages: str) -> Path:
        folder = tmp_path_factory.mktemp("tool")
        venv.create(folder, with_pip=True)
        command = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", *packages]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            why = f"{packages[0]} cannot be installed: {done.stderr[-300:]}"
            pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)
        return folder / "bin"

    return installer


@pytest.fixture
def packages(index: Index) -> Index:
    """The index with packages that need each other, none of which has two solutions."""
    for name, needs in {
        "a": ["b<3", "e.x; extra == 'more'"],
        "b": [],
        "c": ["d", "b>=2"],
        "d": ["b; sys_platform == 'win32'"],
        "e-x": [],
    }.items():
        for version in ("1", "2", "3"):
            index.add(name, version, requires=needs, extras=["more"] if name == "a" else [])
    return index


def _said(command: Sequence[str | Path], folder: Path) -> str | None:
    """Return what a tool prints; None where it refuses."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    env = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PIP_", "VIRTUAL_ENV", "PYTEST"))
    }
    env |= {
        "HOME": str(home),
        "PDM_CHECK_UPDATE": "0",
        "POETRY_VIRTUALENVS_CREATE": "false",
        "PIP_CONFIG_FILE": os.devnull,
    }
    env |= {
        "PIPENV_PYTHON": sys.executable,
        "PIPENV_IGNORE_VIRTUALENVS": "1",
        "NO_COLOR": "1",
        "PIPENV_YES": "1",
    }
    done = subprocess.run(
        [*map(str, command)], cwd=folder, capture_output=True, text=True, env=env, check=False
    )
    return done.stdout if done.returncode == 0 else None


def _pins(text: str | None) -> Found:
    """Return the pins of a requirements file that are for this system."""
    if text is None:
        return None
    lines = [line for line in text.replace("\\\n", " ").splitlines() if re.match(r"[a-z]", line)]
    found = [Requirement(re.sub(r"\s--hash.*", "", line)) for line in lines]
    here = [each for each in found if each.marker is None or each.marker.evaluate(dict(TARGET.markers))]
    return {each.name: str(each.specifier).removeprefix("==") for each in here}


def _ours(file: Path, extras: Sequence[str] = (), groups: Sequence[str] = ()) -> Found:
    try:
        imported = read_import(file, extras=extras, groups=groups, python=PYTHON)
        keys = request_table(imported, {"cuda": "cpu", "python": PYTHON})
        request = Request.from_dict(keys, "")
        with session(retries=0) as http:
            found = resolve_python(request.packages, resolution(http, request, target=TARGET))
    except RequestError as error:
        return {} if "no dependencies" in error.message or "no package is for" in error.message else None
    except ResolveError:
        return None
    return {package.name: package.version for package in found}


def _texts(rng: random.Random, most: int, markers: Sequence[str] = MARKERS) -> list[str]:
    names = rng.sample(NAMES, rng.randint(0, most))
    return [
        f"{'a[more]' if n == 'a' and rng.random() < 0.5 else n}{rng.choice(LIMITS)}{rng.choice(markers)}"
        for n in names
    ]


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_toml(each) for each in value)}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(each)}' for key, each in value.items())} }}"
    return json.dumps(value)


def _differing(count: int, one: Callable[[random.Random], tuple[object, object, object]]) -> list[object]:
    """Return the seeds for which the first two of three differ, with all of them.

    Of the seeds one at least is a project that the tool locks.
    """
    found: list[object] = []
    locked = 0
    for seed in range(count):
        ours, theirs, what = one(random.Random(seed))
        locked += theirs is not None
        if ours != theirs:
            found.append((seed, ours, theirs, what))
    assert locked
    return found


def test_pip_installs_the_same_from_requirements_files(packages: Index, tmp_path: Path) -> None:
    file, report = tmp_path / "requirements.txt", tmp_path / "report.json"

    def one(rng: random.Random) -> tuple[object, object, object]:
        lines = [*_texts(rng, 3), "-r more.txt", "-c limits.txt", "# none"]
        rng.shuffle(lines)
        texts = {"requirements.txt": lines, "more.txt": _texts(rng, 2), "limits.txt": _texts(rng, 3)}
        texts["limits.txt"] = [line.replace("[more]", "") for line in texts["limits.txt"]]
        for name, each in texts.items():
            (tmp_path / name).write_text("\n".join(each) + "\n")
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
        command += [
            "--disable-pip-version-check",
            "--report",
            str(report),
            "-i",
            packages.url,
            "-r",
            str(file),
        ]
        report.unlink(missing_ok=True)
        theirs: Found = None
        if _said(command, tmp_path) is not None:
            metadata = [each["metadata"] for each in json.loads(report.read_text())["install"]]
            theirs = {each["name"]: each["version"] for each in metadata}
        return _ours(file), theirs, texts

    assert not _differing(EXAMPLES // 200, one)


def test_pdm_locks_and_exports_the_same(packages: Index, install: Install, tmp_path: Path) -> None:
    pdm = install("pdm==2.25.9", "hishel<1", "unearth<0.18") / "pdm"

    def one(rng: random.Random) -> tuple[object, object, object]:
        extras = rng.sample(["x", "y"], rng.randint(0, 2))
        groups = rng.sample(["g", "h"], rng.randint(0, 2))
        overrides = {name: rng.choice(("1", "==2", ">=2")) for name in rng.sample(NAMES, rng.randint(0, 1))}
        text = f'[project]\nname = "ours"\nversion = "1"\nrequires-python = "=={PYTHON}.*"\n'
        text += f"dependencies = {_toml(['d', *_texts(rng, 2)])}\n[project.optional-dependencies]\n"
        text += "".join(f"{name} = {_toml(_texts(rng, 2))}\n" for name in ("x", "y"))
        table = rng.choice(("[dependency-groups]", "[tool.pdm.dev-dependencies]"))
        text += f"{table}\n" + "".join(f"{name} = {_toml(_texts(rng, 2))}\n" for name in ("g", "h"))
        text += f'[[tool.pdm.source]]\nname = "pypi"\nurl = "{packages.url}"\nverify_ssl = false\n'
        text += "[tool.pdm.resolution.overrides]\n"
        text += "".join(f"{name} = {_toml(value)}\n" for name, value in overrides.items())
        (tmp_path / "pyproject.toml").write_text(text)
        (tmp_path / "pdm.lock").unlink(missing_ok=True)
        chosen = [word for name in (*extras, *groups) for word in ("-G", name)]
        platform = ["--platform", "manylinux_2_36_x86_64", "--python", f"=={PYTHON}.*"]
        theirs: Found = None
        ours = _ours(tmp_path / "pyproject.toml", extras, groups)
        if _said([pdm, "lock", "-q", *chosen, *platform], tmp_path) is not None:
            theirs = _pins(
                _said(
                    [pdm, "export", "--without-hashes", "--prod" if not groups else "-q", *chosen], tmp_path
                )
            )
            locked = _ours(tmp_path / "pdm.lock", extras, groups)
            return (ours, locked), (theirs, theirs), (text, extras, groups)
        return ours, theirs, (text, extras, groups)

    assert not _differing(EXAMPLES // 333, one)


def _of_poetry(text: str) -> tuple[str, object]:
    """Return the name and the entry of Poetry's for a requirement."""
    form = re.fullmatch(r"([a-z-]+)(\[more\])?([^;]*)( ; (.*))?", text)
    assert form is not None
    entry = {"version": form[3] or "*"}
    return form[1], entry | ({"extras": ["more"]} if form[2] else {}) | (
        {"markers": form[5]} if form[5] else {}
    )


def test_poetry_exports_the_same_from_its_lock_and_resolves_the_same(
    packages: Index, install: Install, tmp_path: Path
) -> None:
    poetry = install("poetry==2.1.4", "poetry-plugin-export==1.9.0") / "poetry"

    def one(rng: random.Random) -> tuple[object, object, object]:
        def table(name: str, most: int, *first: str) -> str:
            entries = dict(map(_of_poetry, [*first, *_texts(rng, most, MARKERS[:-1])]))
            return f"[{name}]\n" + "".join(f"{key} = {_toml(entry)}\n" for key, entry in entries.items())

        text = '[tool.poetry]\nname = "ours"\nversion = "1"\npackage-mode = false\n'
        text += f'[[tool.poetry.source]]\nname = "own"\nurl = "{packages.url}"\npriority = "primary"\n'
        main = table("tool.poetry.dependencies", 2, "d")
        # One for an extra that nothing else of the project asks for.
        main += f'python = "~{PYTHON}"\nopt = {{ version = "*", optional = true }}\n'
        text += f'{main}[tool.poetry.extras]\nx_Y = ["OPT"]\n'
        text += table("tool.poetry.group.g.dependencies", 2) + table("tool.poetry.group.h.dependencies", 1)
        (tmp_path / "pyproject.toml").write_text(text)
        (tmp_path / "poetry.lock").unlink(missing_ok=True)
        if _said([poetry, "lock", "--no-interaction"], tmp_path) is None:
            return None, None, text  # of several solutions for all groups none; ours is for fewer
        extras, groups = rng.sample(["x-y"], rng.randint(0, 1)), rng.sample(["g", "h"], rng.randint(0, 2))
        with_ = [word for name in groups for word in ("--with", name)]
        without = [word for name in {"g", "h"} - {*groups} for word in ("--without", name)]
        words = ["--without-hashes", *with_, *without, *(word for name in extras for word in ("-E", name))]
        theirs = _pins(_said([poetry, "export", *words], tmp_path))
        # What Poetry resolves is for all of the project's groups.
        every = _pins(
            _said([poetry, "export", "--without-hashes", "--all-extras", "--with", "g,h"], tmp_path)
        )
        locked = _ours(tmp_path / "poetry.lock", extras, groups)
        return (locked, _ours(tmp_path / "pyproject.toml", ["x-y"], ["g", "h"])), (theirs, every), text

    packages.add("opt", "1", requires=["e-x"])
    packages.json = False  # it takes JSON, and finds no file in it
    assert not _differing(EXAMPLES // 333, one)


def test_pipenv_requires_what_its_lock_has(packages: Index, install: Install, tmp_path: Path) -> None:
    pipenv = install("pipenv==2026.10.3") / "pipenv"

    def one(rng: random.Random) -> tuple[object, object, object]:
        def table(name: str, most: int, *first: str) -> str:
            entries = dict(map(_of_poetry, [*first, *_texts(rng, most, MARKERS[:-1])]))
            return f"[{name}]\n" + "".join(f"{key} = {_toml(entry)}\n" for key, entry in entries.items())

        text = f'[[source]]\nname = "own"\nurl = "{packages.url}"\nverify_ssl = false\n'
        text += f'[requires]\npython_version = "{PYTHON}"\n'
        text += table("packages", 2, "d") + table("dev-packages", 1, "c")
        (tmp_path / "Pipfile").write_text(text)
        if _said([pipenv, "lock", "--quiet"], tmp_path) is None:
            return None, None, text
        found = []
        for groups, words in (((), ()), (("dev",), ("--dev",))):
            theirs = _pins(_said([pipenv, "requirements", *words], tmp_path))
            found.append((_ours(tmp_path / "Pipfile.lock", (), groups), theirs))
        return [ours for ours, _ in found], [theirs for _, theirs in found], text

    assert not _differing(EXAMPLES // 500, one)
