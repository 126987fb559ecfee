"""Projects of uv in every combination of keys: we lock what uv itself would install."""

from __future__ import annotations

import os
import random
import re
import subprocess
from pathlib import Path

import pytest

from reprobuild.errors import RequestError, ResolveError
from reprobuild.imports.recognize import read_import
from reprobuild.imports.request_keys import request_table
from reprobuild.net.index_settings import uv_program
from reprobuild.net.session import session
from reprobuild.request.model import Request
from reprobuild.resolve.uv_command import resolve_python
from support.index import Index, serve_index
from support.resolving import resolution

pytestmark = pytest.mark.slow
pytest_plugins = ["support.family"]
EXAMPLES = int(os.environ.get("REPROBUILD_TEST_EXAMPLES", "1000")) // 100
MARKERS = ("", " ; python_version >= '3.11'", " ; python_version < '3.11'", " ; sys_platform == 'win32'")
NAMES = ("a", "b", "c", "d", "e", "f")


def _requirement(rng: random.Random) -> str:
    limit = rng.choice(("", "", ">=2", "<3", "==2", "!=3"))
    return f"{rng.choice(NAMES)}{limit}{rng.choice((*[''] * 4, *MARKERS))}"


def _texts(rng: random.Random, most: int) -> list[str]:
    return [_requirement(rng) for _ in range(rng.randint(0, most))]


def _project(rng: random.Random, mirrors: dict[str, str]) -> str:
    """Return a pyproject.toml; the order of its tables and entries is chance too."""
    extras = {extra: [*_texts(rng, 1), "torchy"] for extra in ("x", "y")}
    groups = {"g": [*_texts(rng, 1), "torchy"], "h": ["b", {"include-group": "g"}]}
    if rng.random() < 0.3:
        extras["y"].append(f"ours[x]{rng.choice(MARKERS)}")
    entries = [
        {"index": index, **({kind: name} if kind else {})}
        for index, (kind, name) in zip(
            mirrors, rng.sample([("extra", "x"), ("extra", "y"), ("group", "g")], 2), strict=True
        )
    ]
    rng.shuffle(entries)
    uv = [
        f"{key} = {_toml([*_texts(rng, 2), *(['torchy'] if rng.random() < 0.2 else [])])}"
        for key in ("constraint-dependencies", "override-dependencies")
        if rng.random() < 0.5
    ]
    uv += [f"exclude-dependencies = {_toml([rng.choice(NAMES)])}"] if rng.random() < 0.2 else []
    uv += ["no-sources = true"] if rng.random() < 0.1 else []
    tables = [
        "[project.optional-dependencies]\n" + "".join(f"{k} = {_toml(v)}\n" for k, v in extras.items()),
        "[dependency-groups]\n" + "".join(f"{k} = {_toml(v)}\n" for k, v in groups.items()),
        "[tool.uv]\n" + "\n".join(uv),
        f"[tool.uv.sources]\ntorchy = {_toml(entries)}\n",
        *(f'[[tool.uv.index]]\nname = "{k}"\nurl = "{v}"\nexplicit = true\n' for k, v in mirrors.items()),
    ]
    rng.shuffle(tables)
    head = '[project]\nname = "ours"\nversion = "1"\nrequires-python = ">=3.10"\n'
    return "\n".join([f"{head}dependencies = {_toml(_texts(rng, 3))}", *tables])


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_toml(each) for each in value)}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(each)}' for key, each in value.items())} }}"
    return f'"{value}"'


def _by_uv(file: Path, extras: list[str], groups: list[str]) -> dict[str, str] | None:
    command = [uv_program(), "pip", "compile", file.name, "--quiet", "--no-header", "--no-annotate"]
    command += ["--python-version", "3.11", "--python-platform", "x86_64-unknown-linux-gnu"]
    command += [word for extra in extras for word in ("--extra", extra)]
    command += [word for group in groups for word in ("--group", f"pyproject.toml:{group}")]
    done = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    return dict(re.findall(r"^([a-z]+)==(\S+)", done.stdout, re.MULTILINE))


def _by_us(
    file: Path, extras: list[str], groups: list[str], environment: pytest.MonkeyPatch
) -> dict[str, str] | None:
    try:
        imported = read_import(file, extras=extras, groups=groups, hosts={"127.0.0.1"}, python="3.11")
        keys = request_table(imported, {"cuda": "cpu", "python": "3.11"})
        request = Request.from_dict(keys, "")
        for variable, urls in imported.settings.items():
            environment.setenv(variable, " ".join(urls))
        with session(retries=0) as http:
            found = resolve_python(request.packages, resolution(http, request, order=imported.order))
    except RequestError as error:
        return {} if "no dependencies" in error.message else None
    except ResolveError:
        return None
    return {package.name: package.version for package in found}


def test_a_project_locks_as_uv_itself_would(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, needs in {"a": ["b<3"], "b": [], "c": ["d", "b>=2"], "d": [], "torchy": ["a"]}.items():
        for version in ("1", "2", "3"):
            index.add(name, version, requires=needs)
    # Of the two, that is the newest which the project names first.
    for name, other in (("e", "f"), ("f", "e")):
        for version, needs in (("1", []), ("2", []), ("3", [f"{other}<3"])):
            index.add(name, version, requires=needs)
    differing = []
    with serve_index() as one, serve_index() as two:
        one.add("torchy", "5")
        two.add("torchy", "6")
        mirrors = {"one": one.url, "two": two.url}
        file = tmp_path / "pyproject.toml"
        for seed in range(EXAMPLES):
            rng = random.Random(seed)
            file.write_text(_project(rng, mirrors))
            extras = rng.sample(["x", "y"], rng.randint(0, 2))
            groups = rng.sample(["g", "h"], rng.randint(0, 2))
            theirs = _by_uv(file, extras, groups)
            with monkeypatch.context() as environment:
                ours = _by_us(file, extras, groups, environment)
            if ours != theirs:
                differing.append((seed, extras, groups, ours, theirs))

    assert not differing
