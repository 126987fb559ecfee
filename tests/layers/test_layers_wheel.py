"""Wheels → installed files, against what pip itself installs; and wheels that no one should trust."""

from __future__ import annotations

import ensurepip
import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import strategies as st
from packaging.utils import canonicalize_name, parse_wheel_filename

from reprobuild.errors import BuildError
from reprobuild.fetch.wheel_zip import opened
from reprobuild.layers.entry_points import script_template
from reprobuild.layers.wheel import Place, installed_files
from support.fuzz import for_long, quickly
from support.wheel_contents import PLACE, TEMPLATE, Tree, contents
from support.wheels import Item, odd_wheel, wheel_bytes, write_wheel, zip_bytes

SITE = "opt/venv/lib/python3.11/site-packages"


def installed_by_pip(folder: Path, pip: Path, wheels: Sequence[Path]) -> Tree:
    """Install with a real pip as the Dockerfile does; path without leading slash → mode and bytes."""
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True, umask=0o022)
    before = set(venv.rglob("*"))
    lines = []
    for wheel in wheels:
        name, version, _, _ = parse_wheel_filename(wheel.name)
        lines.append(f"{name}=={version} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n")
    requirements = folder / "requirements.txt"
    requirements.write_text("".join(sorted(lines)))
    finds = [word for parent in sorted({w.parent for w in wheels}) for word in ("--find-links", str(parent))]
    command = [
        *(str(venv / "bin/python"), f"{pip}/pip", "--isolated", "--no-input", "--no-cache-dir"),
        *("--disable-pip-version-check", "install", "--no-index", "--no-deps", "--no-compile"),
        *("--only-binary", ":all:", "--require-hashes", *finds, "--requirement", str(requirements)),
    ]
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(folder)}
    done = subprocess.run(command, check=False, umask=0o022, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    new = (path for path in venv.rglob("*") if path not in before and path.is_file())
    return {str(path).lstrip("/"): (path.stat().st_mode & 0o7777, path.read_bytes()) for path in new}


def bundled_pip() -> Path:
    """The pip that comes with this interpreter."""
    folders = (Path(ensurepip.__file__).parent / "_bundled", Path("/usr/share/python-wheels"))
    found = [path for folder in folders for path in folder.glob("pip-*.whl")]
    if not found:
        reason = "this Python has no pip of its own (ensurepip's wheel)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found[0]


def place_of(folder: Path) -> Place:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Place(prefix=str(folder / "venv").lstrip("/"), python=version)


def same(ours: Tree, pips: Tree) -> None:
    assert sorted(ours) == sorted(pips)
    for path, (mode, data) in ours.items():
        if path.endswith("/RECORD"):
            assert data.decode().split("\r\n") == pips[path][1].decode().split("\r\n"), path
        assert (path, oct(mode), data) == (path, oct(pips[path][0]), pips[path][1])


def ours(wheels: Sequence[Path], folder: Path, template: str) -> Tree:
    """The files of several wheels; of two at one path, that of the first by name."""
    found: dict[str, tuple[int, bytes]] = {}
    for wheel in sorted(wheels, key=lambda w: parse_wheel_filename(w.name)[0], reverse=True):
        name = parse_wheel_filename(wheel.name)[0]
        found |= contents(wheel, name, place_of(folder), template)
    return found


def test_a_wheel_with_every_oddity_is_installed_as_pip_does(tmp_path: Path) -> None:
    pip = bundled_pip()
    wheels = [
        write_wheel(tmp_path, "Odd.Name", "1.0", odd_wheel()),
        write_wheel(tmp_path, "alpha", "1", wheel_bytes("alpha", "1", {"shared/who.py": "WHO = 'alpha'\n"})),
        write_wheel(tmp_path, "beta", "1", wheel_bytes("beta", "1", {"shared/who.py": "WHO = 'beta'\n"})),
        write_wheel(tmp_path, "easy", "1", _easy_install()),
        pip,
    ]
    expected = installed_by_pip(tmp_path, pip, wheels)
    same(ours(wheels, tmp_path, script_template(pip)), expected)
    place = place_of(tmp_path)
    assert expected[f"{place.site}/shared/who.py"][1] == b"WHO = 'alpha'\n"
    assert {f"{place.prefix}/bin/{name}" for name in ("pip", "pip3", f"pip{place.python}")} < set(expected)


def _easy_install() -> bytes:
    points = "[console_scripts]\neasy_install = easy:main\neasy_install-2.7 = easy:main\npip7 = easy:main\n"
    return wheel_bytes("easy", "1", {"easy.py": "def main(): pass\n"}, entry_points=points)


@pytest.mark.slow
@pytest.mark.parametrize("pip", ["pip", "pip<25"])
def test_real_wheels_are_installed_as_pip_does(tmp_path: Path, pip: str) -> None:
    fetch = [sys.executable, f"{bundled_pip()}/pip", "--no-input", "download", "--no-deps", "--quiet"]
    fetch += ["--only-binary", ":all:", "--dest", str(tmp_path / "wheels")]
    subprocess.run([*fetch, pip, "numpy<2", "sympy", "tqdm"], check=True)
    wheels = sorted((tmp_path / "wheels").glob("*.whl"))
    assert len(wheels) == 4
    locked = next(wheel for wheel in wheels if wheel.name.startswith("pip-"))
    same(ours(wheels, tmp_path, script_template(locked)), installed_by_pip(tmp_path, locked, wheels))


def test_the_files_of_a_wheel_are_sorted_by_path(tmp_path: Path) -> None:
    with opened(write_wheel(tmp_path, "odd-name", "1.0", odd_wheel()), "odd-name") as archive:
        files = list(installed_files(archive, "odd-name", "1.0", PLACE, TEMPLATE))
    assert files == sorted(files)


@pytest.mark.parametrize(
    "path",
    [
        *("../evil.py", "a/../../evil.py", "/etc/evil", "a//b.py", "./a.py", "a\\b.py", "a/..", "tab\there"),
        *("a.data/scripts", "a.data/other/x", "a.data/data/../../x", "a.data/scripts/../x", "new\nline.py"),
        *("a.data", "a.data/data", "vertical\x0btab.py", "form\x0cfeed.py", "next\x85line.py"),
        *("line\u2028separator.py", "paragraph\u2029separator.py", "escape\x1b[2J.py", "n" * 256),
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(tmp_path: Path, path: str) -> None:
    wheel = write_wheel(tmp_path, "a", "1", wheel_bytes("a", "1", {path: "x"}))
    with pytest.raises(BuildError, match="a: the wheel"):
        contents(wheel, "a")


def test_a_zero_in_a_name_ends_it(tmp_path: Path) -> None:
    # zipfile cuts the name there, on reading as on writing; no such byte comes through.
    data = wheel_bytes("a", "1", {"okX/../../../x": "x"}).replace(b"okX", b"ok\0")
    assert all("\0" not in path for path in contents(write_wheel(tmp_path, "a", "1", data), "a"))


def test_a_wheel_needs_one_dist_info_with_a_record(tmp_path: Path) -> None:
    two = wheel_bytes("a", "1", {"b-1.dist-info/METADATA": "x"})
    with pytest.raises(BuildError, match=r"2 \.dist-info"):
        contents(write_wheel(tmp_path, "a", "1", two), "a")
    with pytest.raises(BuildError, match=r"0 \.dist-info"):
        contents(write_wheel(tmp_path, "a", "1", zip_bytes({"a.py": Item()})), "a")
    with pytest.raises(BuildError, match="no RECORD"):
        contents(write_wheel(tmp_path, "a", "1", wheel_bytes("a", "1", {}, record="")), "a")


def test_a_record_that_is_no_text_is_a_build_error(tmp_path: Path) -> None:
    data = wheel_bytes("a", "1", {}, record="", info={"RECORD": b"\xff\xfe,,\n"})
    with pytest.raises(BuildError, match=r"^a: its wheel cannot be read"):
        contents(write_wheel(tmp_path, "a", "1", data), "a")


ODD = odd_wheel()


def whatever_is_wrong_is_refused(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]]
) -> None:
    data = bytearray(ODD)
    for place, mask in changes:
        # Two thirds of them in the directory at the end, where most of the meaning is.
        data[place if place % 3 == 0 else len(data) - 1 - place % 4000] ^= mask
    wheel = write_wheel(tmp_path_factory.mktemp("wheel"), "odd-name", "1.0", bytes(data))
    try:
        found = contents(wheel, "odd-name")
    except BuildError:
        return
    assert all(path.startswith("opt/venv/") and ".." not in path.split("/") for path in found)


CHANGES = st.lists(st.tuples(st.integers(0, len(ODD) - 1), st.integers(1, 255)), min_size=1, max_size=4)
test_whatever_is_wrong_is_a_build_error = quickly(changes=CHANGES)(whatever_is_wrong_is_refused)
test_whatever_is_wrong_for_long = for_long(changes=CHANGES)(whatever_is_wrong_is_refused)


def test_the_name_of_a_wheel_is_normalised() -> None:
    assert canonicalize_name("Odd.Name") == "odd-name"


INFO = "a-1.dist-info"
REFUSED_BY_PIP: dict[str, tuple[str, dict[str, Item]]] = {
    "a folder of another package": (
        r"the folder 'b-1\.dist-info', of another package",
        {
            "b-1.dist-info/METADATA": Item(content=b"Name: a\nVersion: 1\n"),
            "b-1.dist-info/WHEEL": Item(content=b"Wheel-Version: 1.0\n"),
            "b-1.dist-info/RECORD": Item(),
        },
    ),
    "another package": (
        r"says that it is 'b' '1', and the lock has it as a 1",
        {f"{INFO}/METADATA": Item(content=b"Name: b\nVersion: 1\n")},
    ),
    "another version": (
        r"says that it is 'a' '2', and the lock has it as a 1",
        {f"{INFO}/METADATA": Item(content=b"Name: a\nVersion: 2\n")},
    ),
    "no version": (r"says that it is 'a' ''", {f"{INFO}/METADATA": Item(content=b"Name: a\n")}),
    "a form yet to come": (
        r"has the Wheel-Version '99\.0'; only 1 is known",
        {f"{INFO}/WHEEL": Item(content=b"Wheel-Version: 99.0\n")},
    ),
    "no form": (r"has the Wheel-Version 'none'", {f"{INFO}/WHEEL": Item(content=b"Tag: py3-none-any\n")}),
}


@pytest.mark.parametrize("what", REFUSED_BY_PIP)
def test_what_pip_refuses_is_refused_by_name(tmp_path: Path, what: str) -> None:
    message, members = REFUSED_BY_PIP[what]
    usual = {
        f"{INFO}/METADATA": Item(content=b"Metadata-Version: 2.1\nName: a\nVersion: 1\n"),
        f"{INFO}/WHEEL": Item(content=b"Wheel-Version: 1.0\n"),
        f"{INFO}/RECORD": Item(),
    }
    data = zip_bytes(members if any("b-1" in path for path in members) else {**usual, **members})
    with pytest.raises(BuildError, match=f"^a: the wheel.*{message}"):
        contents(write_wheel(tmp_path, "a", "1", data), "a")


@pytest.mark.parametrize("file", ["WHEEL", "METADATA"])
def test_a_wheel_without_its_documents_is_refused(tmp_path: Path, file: str) -> None:
    members = {name: Item() for name in ("METADATA", "WHEEL", "RECORD") if name != file}
    members |= {"WHEEL": Item(content=b"Wheel-Version: 1.0\n")} if file != "WHEEL" else {}
    data = zip_bytes({f"{INFO}/{name}": item for name, item in members.items()})
    with pytest.raises(BuildError, match=f"a: the wheel has no {file}"):
        contents(write_wheel(tmp_path, "a", "1", data), "a")


@pytest.mark.parametrize(
    "path",
    [
        *("reprobuild_hook.py", "reprobuild_hook/__init__.py", "reprobuild.pth", "reprobuild_hook.so"),
        *("reprobuild_hook.cpython-311-x86_64-linux-gnu.so", "__pycache__/reprobuild_hook.cpython-311.pyc"),
        *("a.data/purelib/reprobuild_hook.py", "a.data/data/lib/python3.11/site-packages/reprobuild_hook.py"),
        *("sitecustomize.py", "usercustomize/__init__.py", "__pycache__/sitecustomize.cpython-311.pyc"),
        *(
            "a.data/data/lib/python3.11/sitecustomize.py",
            "a.data/data/lib/python3/dist-packages/sitecustomize.so",
        ),
        "a.data/data/local/lib/python3.11/dist-packages/usercustomize/__init__.py",
    ],
)
def test_a_name_of_reprobuild_s_own_is_refused(tmp_path: Path, path: str) -> None:
    data = wheel_bytes("a", "1", {path.replace("a.data", "a-1.data"): "x"})
    wheel = write_wheel(tmp_path, "a", "1", data)
    with pytest.raises(BuildError, match=r"a: has the file '/opt/venv/.*', a name that "):
        contents(wheel, "a")


@pytest.mark.parametrize(
    "path",
    [
        *(
            "a.data/scripts/python",
            "a.data/scripts/python3",
            "a.data/scripts/python3.11",
            "a.data/data/bin/python3",
        ),
        *("a.data/data/pyvenv.cfg", "a.data/data/pyvenv.cfg/x", "a.data/data/bin/python/x"),
        *("a.data/scripts/python._pth", "a.data/scripts/python3.11._pth", "a.data/scripts/pyvenv.cfg"),
        *("a.data/scripts/pybuilddir.txt", "a.data/data/bin/Modules/Setup.local", "a.data/data/lib64"),
        *("a.data/data/bin/lib/python3.11/os.py", "a.data/data/lib/python311.zip"),
        "a.data/data/lib64/python3.11/random.abi3.so",
    ],
)
def test_the_environment_s_interpreter_is_no_wheel_s_to_replace(tmp_path: Path, path: str) -> None:
    """pip installs it, and from then on every program runs on what the wheel brought."""
    data = wheel_bytes("a", "1", {path.replace("a.data", "a-1.data"): "x"})
    with pytest.raises(BuildError, match=r"a: has the file '/opt/venv/.*', which is the environment's own"):
        contents(write_wheel(tmp_path, "a", "1", data), "a")


def test_a_script_whose_name_no_file_system_takes_is_refused(tmp_path: Path) -> None:
    data = wheel_bytes("a", "1", {}, entry_points=f"[console_scripts]\n{'x' * 256} = a:b\n")
    with pytest.raises(BuildError, match="an entry point of a refused name: 'x"):
        contents(write_wheel(tmp_path, "a", "1", data), "a")


@pytest.mark.parametrize("path", ["a/sitecustomize.py", "a/my_reprobuild_hook.py", "reprobuild_hooks.py"])
def test_a_name_that_is_only_alike_is_taken(tmp_path: Path, path: str) -> None:
    wheel = write_wheel(tmp_path, "a", "1", wheel_bytes("a", "1", {path: "x"}))
    assert f"{SITE}/{path}" in contents(wheel, "a")
