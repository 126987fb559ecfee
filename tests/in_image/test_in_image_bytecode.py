"""Bytecode that is the same every time: in real processes, over seeds, processors and company."""

from __future__ import annotations

import marshal
import os
import py_compile
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from reprobuild.in_image import bytecode

TAG = sys.implementation.cache_tag
SITE = f"/opt/venv/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"

RICH = '''
"""A module with what makes bytecode differ."""
NAMES = frozenset({"alpha", "beta", "gamma", "delta", "epsilon"})
def known(name: str) -> bool:
    return name in {"red", "green", "blue", "cyan", "magenta", "yellow", b"bytes", 1.5, (1, "two")}
class Point:
    def __init__(self, alpha, beta): self.alpha, self.beta = alpha, beta
SHARED = "alpha" "beta"
def other(): return "alphabeta", ("alpha", "beta"), 10**40, 1e300, ...
'''
FILES: dict[str, str | bytes] = {
    "rich/__init__.py": "",
    "rich/first.py": RICH,
    "rich/second.py": RICH.replace("known", "unknown") + "from .first import *\n",
    "rich/sub/deep.py": "VALUE = 'x' * 10\n",
    "rich/broken.py": "def (:\n",
    "rich/latin.py": b"# -*- coding: latin-1 -*-\nNAME = '\xe9'\n",
    "rich/not_utf8.py": b"NAME = '\xe9'\n",
    "rich/zero.py": b"A = 1\0\n",
    "rich/data.txt": "x = 1",
}
OTHERS: dict[str, str | bytes] = {
    f"other{i}/mod{j}.py": f"{RICH}\nNUMBER = {i * j}\n" for i in range(3) for j in range(3)
}

Contents = Mapping[str, "str | bytes"]


def write(folder: Path, files: Contents) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def stage_of(folder: Path, packages: Mapping[str, Contents], site: str = SITE) -> Path:
    folder.mkdir(exist_ok=True)
    for package, files in packages.items():
        with (folder / f"{package}.sources").open("wb") as archive:
            for name in sorted(files):
                content = files[name]
                if name.endswith(".py"):
                    data = content.encode() if isinstance(content, str) else content
                    bytecode.write(archive, f"{site}/{name}", data)
    return folder


def venv_of(folder: Path, packages: Mapping[str, Contents]) -> Path:
    site = folder / SITE.removeprefix("/opt/venv/")
    for name, files in packages.items():
        write(site, files)
        rows = "".join(f"{path},,\r\n" for path in reversed(list(files)))
        info = f"{name}-1.0.dist-info/RECORD"
        write(site, {info: f'{rows}../../../bin/tool.py,,\r\n"a, b.txt",,\r\ngone.py,,\r\n{info},,\r\n'})
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin/tool.py").write_text("x = 1\n")
    return folder


def run(
    *arguments: str, cpus: int | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    prefix = ["taskset", "--cpu-list", f"0-{cpus - 1}"] if cpus else []
    return subprocess.run(
        [*prefix, sys.executable, bytecode.__file__, *arguments],
        env={"PATH": os.environ["PATH"], **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )


def compiled(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.pyc")}


def answer(archive: Path, site: str = SITE) -> dict[str, bytes]:
    with archive.open("rb") as file:
        return {path.removeprefix(f"{site}/"): content for path, content in bytecode.read(file)}


def staged(folder: Path, packages: Mapping[str, Contents], **env: str) -> dict[str, bytes]:
    done = run("--stage", str(stage_of(folder, packages)), env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return answer(folder / "rich.bytecode")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return staged(tmp_path_factory.mktemp("expected"), {"rich": FILES}, PYTHONHASHSEED="0")


def test_what_compiles_is_compiled_and_the_rest_is_left_out(expected: dict[str, bytes]) -> None:
    names = ["rich/__init__", "rich/first", "rich/latin", "rich/second", "rich/sub/deep"]
    wanted = [f"{n.rpartition('/')[0]}/__pycache__/{n.rpartition('/')[2]}.{TAG}.pyc" for n in names]
    assert sorted(wanted) == sorted(expected)


def test_it_is_unchecked_hash_bytecode_with_the_image_s_names(expected: dict[str, bytes]) -> None:
    assert {data[4:8] for data in expected.values()} == {(1).to_bytes(4, "little")}
    first = expected[f"rich/__pycache__/first.{TAG}.pyc"]
    assert f"{SITE}/rich/first.py".encode() in first


@pytest.mark.parametrize("seed", ["1", "4711", "random"])
def test_the_hash_seed_does_not_matter(tmp_path: Path, expected: dict[str, bytes], seed: str) -> None:
    assert expected == staged(tmp_path, {"rich": FILES}, PYTHONHASHSEED=seed)


@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "TZ": "Pacific/Kiritimati"},
        {"PYTHONOPTIMIZE": "2", "PYTHONDONTWRITEBYTECODE": "1"},
        {"SOURCE_DATE_EPOCH": "1", "PYTHONPYCACHEPREFIX": "/nowhere", "PYTHONWARNINGS": "error"},
    ],
)
def test_the_surroundings_do_not_matter(
    tmp_path: Path, expected: dict[str, bytes], env: dict[str, str]
) -> None:
    assert expected == staged(tmp_path, {"rich": FILES}, **env)


def test_the_company_does_not_matter(tmp_path: Path, expected: dict[str, bytes]) -> None:
    assert expected == staged(tmp_path / "a", {"rich": FILES, "aaa": OTHERS})
    assert expected == staged(tmp_path / "b", {"zzz": OTHERS, "bbb": OTHERS, "rich": FILES})


def test_the_number_of_processors_does_not_matter(tmp_path: Path, expected: dict[str, bytes]) -> None:
    stage = stage_of(tmp_path, {"rich": FILES, "other": OTHERS})
    assert run("--stage", str(stage), cpus=1).returncode == 0
    assert expected == answer(stage / "rich.bytecode")


def test_an_environment_gets_the_bytes_of_the_stage(tmp_path: Path, expected: dict[str, bytes]) -> None:
    venv = venv_of(tmp_path / "venv", {"Rich": FILES, "aaa": OTHERS})
    done = run("--venv", str(venv))
    assert (done.returncode, done.stderr) == (0, "")
    site = venv / SITE.removeprefix("/opt/venv/")
    found = {name: data for name, data in compiled(site).items() if name.startswith("rich/")}
    # The names in it are those of the place; a folder of the same length is not to be had here.
    assert {name: data[:16][:8] for name, data in found.items()} == {n: d[:8] for n, d in expected.items()}
    stage = stage_of(tmp_path / "stage", {"rich": FILES}, str(site))
    assert run("--stage", str(stage)).returncode == 0
    assert answer(stage / "rich.bytecode", str(site)) == found
    assert not list((venv / "bin").rglob("*.pyc"))


def test_a_file_of_two_distributions_is_compiled_by_the_first_by_name(tmp_path: Path) -> None:
    shared = {"shared.py": RICH}
    packages = {"B_two": {"b.py": RICH, **shared}, "alpha.one": {"a.py": "A = 1\n", **shared}}
    venv = venv_of(tmp_path, packages)
    site = venv / SITE.removeprefix("/opt/venv/")
    names = [[Path(path).name for path in paths] for paths in bytecode.of_environment(venv)]
    assert names == [["a.py", "shared.py"], ["b.py"]]
    assert run("--venv", str(venv)).returncode == 0
    assert (site / f"__pycache__/shared.{TAG}.pyc").exists()


def test_shipped_bytecode_is_replaced(tmp_path: Path) -> None:
    shipped = f"rich/__pycache__/first.{TAG}.pyc"
    site = (
        venv_of(tmp_path, {"rich": {**FILES, shipped: b"shipped, for a time stamp"}})
        / SITE[len("/opt/venv/") :]
    )
    assert run("--venv", str(tmp_path)).returncode == 0
    assert (site / shipped).read_bytes()[4:8] == bytecode.UNCHECKED_HASH


def test_only_what_is_named_is_compiled_if_asked(tmp_path: Path) -> None:
    """A file that another package had there before, with its bytecode, is compiled anew."""
    shared: Contents = {"shared.py": "NEW = 1\n", f"__pycache__/shared.{TAG}.pyc": b"of the old file"}
    linked: Contents = {"done.py": "", f"__pycache__/done.{TAG}.pyc": b"shipped", "more.py": "", **shared}
    packages: dict[str, Contents] = {"A_linked": linked, "on.Top": {"new.py": "", **shared}}
    site = venv_of(tmp_path, packages) / SITE[len("/opt/venv/") :]
    only = tmp_path / "requirements.txt"
    only.write_text("# A comment\non-top==1.0 --hash=sha256:00\nabsent==1.0\n")
    assert run("--venv", str(tmp_path), "--only", str(only)).returncode == 0
    names = ("done", "new", "shared")
    assert sorted(compiled(site)) == [f"__pycache__/{name}.{TAG}.pyc" for name in names]
    assert (site / f"__pycache__/done.{TAG}.pyc").read_bytes() == b"shipped"
    assert (site / f"__pycache__/shared.{TAG}.pyc").read_bytes()[4:8] == bytecode.UNCHECKED_HASH


def test_its_files_are_readable_by_all_whatever_the_umask(tmp_path: Path) -> None:
    site = venv_of(tmp_path, {"rich": FILES}) / SITE.removeprefix("/opt/venv/")
    command = [sys.executable, bytecode.__file__, "--venv", str(tmp_path)]
    subprocess.run(command, check=True, umask=0o027)
    assert {p.stat().st_mode & 0o777 for p in site.rglob("*.pyc")} == {0o644}


def test_importing_looks_at_no_source(tmp_path: Path) -> None:
    site = venv_of(tmp_path, {"rich": FILES}) / SITE.removeprefix("/opt/venv/")
    assert run("--venv", str(tmp_path)).returncode == 0
    (site / "rich/sub/deep.py").write_text("VALUE = 'changed'\n")
    code = "from rich.sub.deep import VALUE; from rich.first import NAMES, known; print(VALUE, known('red'))"
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(site)}
    done = subprocess.run([sys.executable, "-S", "-c", code], env=env, capture_output=True, check=True)
    assert done.stdout.split() == [b"xxxxxxxxxx", b"True"]


def test_it_is_the_bytecode_of_python_s_own_compiler(tmp_path: Path, expected: dict[str, bytes]) -> None:
    """But for what the marshaller shares, which loading undoes."""
    source, target = tmp_path / "first.py", tmp_path / "first.pyc"
    source.write_text(RICH)
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(
        str(source), str(target), f"{SITE}/rich/first.py", doraise=True, invalidation_mode=mode
    )
    ours = expected[f"rich/__pycache__/first.{TAG}.pyc"]
    assert ours[:16] == target.read_bytes()[:16]
    assert marshal.loads(ours[16:]) == marshal.loads(target.read_bytes()[16:])


def test_a_process_that_dies_is_reported(tmp_path: Path) -> None:
    stage = stage_of(tmp_path, {"rich": FILES})
    with (stage / "rich.sources").open("ab") as archive:
        archive.write(b"no header\n")
    done = run("--stage", str(stage))
    assert done.returncode == 1
    assert "bytecode.py: a compiling process failed" in done.stderr
