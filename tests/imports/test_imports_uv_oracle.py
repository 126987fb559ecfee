"""Projects of uv in every combination of keys: we lock what uv itself would install."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from reprobuild.errors import RequestError, ResolveError
from reprobuild.imports.recognize import read_import
from reprobuild.imports.request_keys import request_table
from reprobuild.imports.stale_uv_locks import check_uv_lock
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


PROJECT = """
[project]
name = "ours"
version = "1"
requires-python = ">=3.11"
dependencies = ["a>=1", "b; python_version >= '3.12'", "torchy"]
[project.optional-dependencies]
x = ["c"]
[dependency-groups]
g = ["d>=1", {include-group = "h"}]
h = ["e"]
dev = ["f"]
[tool.uv]
constraint-dependencies = ["b<3"]
override-dependencies = ["d==2"]
exclude-dependencies = ["z"]
[tool.uv.sources]
torchy = {index = "one"}
[[tool.uv.index]]
name = "one"
url = "ONE"
explicit = true
"""
_B = "python_version >= '3.12'"
_UV = "[tool.uv]"
EDITS = (
    ("", ""),
    ("a>=1", "A >= 1.0"),
    (_B, "python_full_version >= '3.12'"),
    (_B, f"{_B} or python_version < '3.9'"),
    ('"a>=1", ', ""),
    ('"a>=1"', '"a"'),
    ('"a>=1"', '"a[more]>=1"'),
    ('"a>=1"', '"a>=1", "e; sys_platform == \'win32\'"'),
    ('"a>=1"', '"a>=1", "q; python_version < \'3\'"'),
    ('"a>=1"', "\"a>=1; extra == 'x'\""),
    (_B, f"{_B} or sys_platform == 'win32'"),
    (_B, f"{_B} and platform_machine == 'aarch64'"),
    (_B, f"{_B} and implementation_name == 'cpython'"),
    (_B, f"{_B} and platform_system == 'Linux'"),
    (_B, f"{_B} and sys_platform in 'linux darwin'"),
    (_B, "python_full_version >= '3.12.1'"),
    (_B, "'3.12' <= python_version"),
    ('version = "1"', 'version = "1.0"'),
    ('version = "1"', 'version = "2"'),
    (">=3.11", ">=3.11.0"),
    (">=3.11", ">=3.11,!=3.12.1"),
    (">=3.11", ">=3.11,<4"),
    (">=3.11", "~=3.11"),
    (">=3.11", ">=3.10"),
    ('x = ["c"]', 'X = ["c"]'),
    ('x = ["c"]', 'x = ["c"]\ny = []'),
    ('x = ["c"]', 'x = ["c"]\ny = ["ours[x]"]'),
    ('x = ["c"]', 'y = ["c"]'),
    ('x = ["c"]', "x = [\"c; sys_platform == 'win32'\"]"),
    ('h = ["e"]', 'h = ["e"]\nk = []'),
    ('{include-group = "h"}', '"e"'),
    ('dev = ["f"]', 'dev = ["f>1"]'),
    (_UV, f'{_UV}\ndependency-groups = {{h = {{requires-python = ">=3.12"}}}}'),
    (_UV, f'{_UV}\ndependency-groups = {{g = {{requires-python = ">=3.10"}}}}'),
    (_UV, f'{_UV}\ndev-dependencies = ["a"]'),
    (_UV, f'{_UV}\ndefault-groups = ["g"]'),
    (_UV, f'{_UV}\ndefault-groups = ["dev"]'),
    (_UV, f"{_UV}\nenvironments = [\"sys_platform == 'linux'\"]"),
    (_UV, f'{_UV}\nconflicts = [[{{extra = "x"}}, {{group = "g"}}]]'),
    (_UV, f'{_UV}\nresolution = "lowest"'),
    (_UV, f'{_UV}\nresolution = "highest"'),
    (_UV, f'{_UV}\nexclude-newer = "2030-01-01"'),
    (_UV, f'{_UV}\nbuild-constraint-dependencies = ["wheel<1"]'),
    (_UV, f'{_UV}\ndependency-metadata = [{{name = "a", version = "3"}}]'),
    (_UV, f'{_UV}\ndependency-metadata = [{{name = "none", version = "3"}}]'),
    ('["b<3"]', '["b<3", "a<9"]'),
    ('["b<3"]', '["b<3", "none<9"]'),
    ('["b<3"]', "[\"b<3; sys_platform == 'win32'\"]"),
    ('["d==2"]', "[\"d==2; sys_platform == 'linux'\"]"),
    ('["d==2"]', '["d==2", "none==1"]'),
    ('["z"]', '["z", "none"]'),
    ('["z"]', '["f"]'),
    ('["z"]', "[]"),
    ('torchy = {index = "one"}', ""),
    ('torchy = {index = "one"}', 'torchy = {index = "one"}\nnone = {index = "one"}'),
    ('{index = "one"}', '{index = "one", marker = "sys_platform == \'linux\'"}'),
    ('"one"', '"other"'),
)


def test_a_lock_that_uv_calls_stale_is_refused_or_named_and_no_other(index: Index, tmp_path: Path) -> None:
    """Lock a project with one edit, and compare what is said of the lock beside the project with another."""
    for name, needs in {"a": ["f"], "torchy": ["b"], **dict.fromkeys("bcdefq", ())}.items():
        for version in ("1", "2", "3"):
            index.add(name, version, requires=list(needs), extras=["more"] if name == "a" else [])
    differing, stale = [], 0
    file, lock = tmp_path / "pyproject.toml", tmp_path / "uv.lock"
    environment = {**os.environ, "UV_PYTHON": sys.executable, "UV_CACHE_DIR": str(tmp_path / "cache")}

    def is_locked(*words: str) -> bool:
        command = [uv_program(), "lock", "--quiet", *words]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
        return done.returncode == 0

    with serve_index() as one:
        for version in ("4", "5"):
            one.add("torchy", version, requires=["b"])
        project = PROJECT.replace("ONE", one.url)
        for seed in range(EXAMPLES):
            first, second = random.Random(seed).choices(EDITS, k=2)
            lock.unlink(missing_ok=True)
            file.write_text(project.replace(*first) if first[0] else project)
            if not is_locked():
                continue
            file.write_text(project.replace(*second) if second[0] else project)
            by_uv = is_locked("--check")
            try:
                said = check_uv_lock(lock)
            except RequestError as error:
                said = (error.message,)
            stale += not by_uv
            if by_uv is bool(said):
                differing.append((seed, first, second, "current" if by_uv else "stale", said))
    assert stale
    assert not differing
