"""Imports to the end: an index on loopback, uv, and the lock that comes of it."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import uv

from reprobuild.imports import target_system
from reprobuild.lock.reader import parse_lock
from reprobuild.request.model import Request
from support.index import Index, serve_index

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.family"]


@pytest.fixture(autouse=True)
def _ready(family: Index, apt: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_system, "architecture", lambda: "amd64")


def pins(name: str) -> dict[str, str]:
    return {p.name: p.version for p in parse_lock(Path(f"envs/pylock.{name}.toml").read_text(), "").python}


def request(name: str) -> Request:
    return Request.from_dict(Request.load(Path(f"envs/{name}.toml").read_text(), "") | {"name": name}, "")


def test_what_is_pinned_stays_and_the_rest_is_resolved(family: Index, call: Call) -> None:
    Path("requirements.txt").write_text("torch==2.4.0\nnumpy==1.26.4\n")
    said = call("lock", "--from", "requirements.txt", "--cuda", "12.1", "--package", "filelock==1.0")
    assert said.status == 0, said.err
    assert pins("work") == {
        "torch": "2.4.0", "numpy": "1.26.4", "filelock": "1.0", "pip": "24.2",
        "nvidia-cuda-runtime-cu12": "12.1.105",
    }  # fmt: skip
    # The request is one like any other.
    assert call("lock", "--check", "work").status == 0


@pytest.mark.parametrize(
    ("asked", "flag", "is_told"),
    [
        *(("==2.4.0", "2.4.1", True), (">=2.4", "2.4.1", False), ("==2.4.1", "2.4.1", False)),
        *((">=2.4", "<2.4.1", True), ("<2.4.1", "<2.4.1", False), ("", "2.4.1", False)),
    ],
)
def test_another_torch_than_the_file_asks_for_is_told(
    call: Call, asked: str, flag: str, is_told: bool
) -> None:
    Path("requirements.txt").write_text(f"torch{asked}\n")
    said = call("lock", "--from", "requirements.txt", "--cuda", "12.1", "--torch", flag)
    assert said.status == 0, said.err
    line = f"requirements.txt: asks for torch{asked}; --torch {flag} counts in its place"
    assert (line in said.err, "counts in its place" in said.err) == (is_told, is_told)


def test_a_range_of_torch(family: Index, call: Call) -> None:
    Path("requirements.txt").write_text("torch<2.4.1\n")
    assert call("lock", "--from", "requirements.txt", "--cuda", "12.1").status == 0
    assert pins("work")["torch"] == "2.4.0"
    Path("other.txt").write_text("torch>=2.6\n")
    said = call("lock", "--from", "other.txt", "--cuda", "12.1")
    assert said.status == 5
    assert "torch >=2.6 is built for CUDA 13.0, 12.4, not for 12.1" in said.err
    assert not Path("envs/other.toml").exists()


def test_hashes_are_held(family: Index, call: Call) -> None:
    wheel = next(f for f in family.files if f.name.startswith("numpy-1.26.4"))
    good = f"numpy==1.26.4 --hash=sha256:{wheel.sha256}\n"
    Path("good.txt").write_text(good)
    Path("bad.txt").write_text(good.replace(wheel.sha256, hashlib.sha256(b"else").hexdigest()))
    assert call("lock", "--from", "good.txt", "--cuda", "12.1").status == 0
    said = call("lock", "--from", "bad.txt", "--cuda", "12.1")
    assert said.status == 5
    assert f"do not match the imported hashes: {wheel.name}" in said.err
    assert not Path("envs/bad.toml").exists()


def test_a_uv_lock_with_its_groups(family: Index, call: Call) -> None:
    Path("pyproject.toml").write_text(
        '[project]\nname = "ours"\nversion = "1"\nrequires-python = ">=3.11"\n'
        'dependencies = ["filelock==1.0"]\n'
        '[dependency-groups]\ntrain = ["torch==2.4.0"]\ndev = ["filelock"]\n'
    )
    lock = [uv.find_uv_bin(), "lock", "--quiet", "--python", sys.executable, "--no-python-downloads"]
    subprocess.run(lock, check=True)
    said = call("lock", "--from", "uv.lock", "--group", "train")
    assert said.status == 0, said.err
    assert pins("ours")["torch"] == "2.4.0"
    assert pins("ours")["filelock"] == "1.0"
    assert "without dev, a group that `uv sync` installs: --group dev includes it" in said.err
    # Without the group there is no torch in it, and the newest is taken.
    assert call("lock", "--from", "uv.lock", "--name", "bare").status == 0
    assert (request("bare").cuda, pins("bare")["filelock"]) == ("13.0", "1.0")
    Path("uv.lock").write_text("version = 99\n")
    said = call("lock", "--from", "uv.lock")
    assert (said.status, "uv.lock: uv cannot read it" in said.err) == (3, True)


def test_a_uv_lock_of_several_indexes(family: Index, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it takes from another index than the usual one is asked of that, once the user allows it."""
    monkeypatch.setenv("UV_INDEX", "")  # is set by the import, and restored after the test
    with serve_index() as other:
        other.add("secret", "1.0")
        Path("pyproject.toml").write_text(
            '[project]\nname = "ours"\nversion = "1"\nrequires-python = ">=3.11"\n'
            'dependencies = ["filelock==1.0", "secret"]\n'
            '[tool.uv.sources]\nsecret = { index = "other" }\n'
            f'[[tool.uv.index]]\nname = "other"\nurl = "{other.url}"\nexplicit = true\n'
        )
        lock = [uv.find_uv_bin(), "lock", "--quiet", "--python", sys.executable, "--no-python-downloads"]
        subprocess.run(lock, check=True)
        said = call("lock", "--from", "uv.lock", "--cuda", "12.1")
        assert said.status == 3
        assert "uv.lock: secret: --extra-index-url: the index is a setting of the machine" in said.err
        assert "give --index-from-file 127.0.0.1" in said.err
        allowed = ("--index-from-file", "127.0.0.1")
        said = call("lock", "--from", "uv.lock", "--cuda", "12.1", *allowed)
        assert said.status == 0, said.err
        assert (pins("ours")["secret"], pins("ours")["filelock"]) == ("1.0", "1.0")


def test_a_uv_lock_with_forks_and_conflicts(family: Index, call: Call) -> None:
    """The fork of this machine and Python counts, and of conflicting extras the one that is asked for."""
    Path("pyproject.toml").write_text(
        '[project]\nname = "ours"\nversion = "1"\nrequires-python = ">=3.11"\n'
        'dependencies = ["filelock==1.0", "numpy==1.26.4 ; sys_platform == \'linux\'", '
        "\"numpy==2.1.0 ; sys_platform != 'linux'\"]\n"
        '[project.optional-dependencies]\nold = ["torch==2.4.0"]\nnew = ["torch==2.4.1"]\n'
        '[tool.uv]\nconflicts = [[{ extra = "old" }, { extra = "new" }]]\n'
    )
    lock = [uv.find_uv_bin(), "lock", "--quiet", "--python", sys.executable, "--no-python-downloads"]
    subprocess.run(lock, check=True)
    assert Path("uv.lock").read_text().count('name = "torch"\nversion') == 2
    for extra, version in (("old", "2.4.0"), ("new", "2.4.1")):
        said = call("lock", "--from", "uv.lock", "--extra", extra, "--name", extra)
        assert said.status == 0, said.err
        assert (pins(extra)["torch"], pins(extra)["numpy"]) == (version, "1.26.4")
    said = call("lock", "--from", "uv.lock", "--extra", "old", "--extra", "new")
    assert (said.status, "uv.lock: uv cannot read it" in said.err) == (3, True)
    assert "`new` and `old` are incompatible" in said.err


def test_an_exported_lock_comes_back_the_same(family: Index, call: Call) -> None:
    assert call("lock", "--cuda", "12.1").status == 0
    assert call("convert", "torch-cu121", "--to", "requirements", "-o", "all.txt").status == 0
    assert call("lock", "--from", "all.txt").status == 0
    assert pins("all") == pins("torch-cu121")


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--from", "a.txt", "--from-image", "b"], "not both"),
        (["--cuda", "12.1", "--group", "x"], "need --from"),
    ],
)
def test_flags_that_do_not_go_together(call: Call, flags: list[str], says: str) -> None:
    said = call("lock", *flags)
    assert (said.status, said.out) == (2, "")
    assert says in said.err


def test_an_image_that_is_not_there(call: Call) -> None:
    assert call("lock", "--from-image", "none").status == 10


# --- Wheels by their address ---


def hidden(family: Index, body: bytes = b"") -> str:
    """Put a wheel on the server that its index does not list under its name; return its address."""
    file = family.add("ours", "1.0+custom", requires=["filelock<1.1"])
    file.project = "hidden"
    if body:
        file.body = body
    return f"{family.root}/files/{file.name.replace('+', '%2B')}"


def test_a_wheel_by_its_address(family: Index, call: Call) -> None:
    address = hidden(family)
    Path("requirements.txt").write_text(f"{address}\ntorch==2.4.0\n")
    said = call("lock", "--from", "requirements.txt", "--cuda", "12.1")
    assert said.status == 0, said.err
    (ours,) = (
        p for p in parse_lock(Path("envs/pylock.work.toml").read_text(), "").python if p.name == "ours"
    )
    file = next(f for f in family.files if f.project == "hidden")
    assert (ours.version, ours.wheel.url, ours.wheel.sha256) == ("1.0+custom", address, file.sha256)
    assert ours.wheel.size == len(file.body)
    assert pins("work")["filelock"] == "1.0"
    assert call("lock", "work").status == 0


def test_an_address_that_gives_other_bytes(family: Index, call: Call) -> None:
    address = hidden(family)
    Path("requirements.txt").write_text(f"ours @ {address}\n")
    assert call("lock", "--from", "requirements.txt", "--cuda", "12.1").status == 0
    other = family.add("ours", "1.0+custom", requires=["filelock"])
    family.files.remove(other)
    next(f for f in family.files if f.project == "hidden").body = other.body
    before = Path("envs/pylock.work.toml").read_text()
    said = call("lock", "work")
    assert said.status == 5
    assert f"ours: {address} gives other bytes than when it was locked" in said.err
    assert Path("envs/pylock.work.toml").read_text() == before
    assert call("lock", "--upgrade", "ours", "work").status == 0
    assert call("lock", "work").status == 0


def test_an_address_with_a_hash(family: Index, call: Call) -> None:
    address = hidden(family)
    good = next(f for f in family.files if f.project == "hidden").sha256
    Path("good.txt").write_text(f"ours @ {address}#sha256={good}\n")
    Path("bad.txt").write_text(f"ours @ {address}#sha256={'0' * 64}\n")
    Path("line.txt").write_text(f"ours @ {address} --hash=sha256:{'0' * 64}\n")
    assert call("lock", "--from", "good.txt", "--cuda", "12.1").status == 0
    for name in ("bad", "line"):
        said = call("lock", "--from", f"{name}.txt", "--cuda", "12.1")
        assert said.status == 5, said.err
        assert not Path(f"envs/{name}.toml").exists()


def test_a_wheel_of_another_machine_by_its_address(family: Index, call: Call) -> None:
    family.add("ours", "1.0", tag="cp311-cp311-win_amd64").project = "hidden"
    Path("requirements.txt").write_text(f"{family.root}/files/ours-1.0-cp311-cp311-win_amd64.whl\n")
    said = call("lock", "--from", "requirements.txt", "--cuda", "12.1")
    assert said.status == 5
    assert "ours" in said.err


# --- Pins that cannot be kept ---


def test_a_torch_that_is_not_for_the_cuda_names_the_one_that_is(family: Index, call: Call) -> None:
    Path("requirements.txt").write_text("torch==2.0.1\n")
    said = call("lock", "--from", "requirements.txt", "--cuda", "12.1")
    assert said.status == 5
    assert "take torch 2.4.1, the newest for CUDA 12.1" in said.err
    assert call("lock", "--from", "requirements.txt", "--cuda", "12.1", "--loosen", "torch").status == 0
    assert pins("work")["torch"] == "2.4.1"


@pytest.mark.parametrize("flag", ["--loosen", "--index-from-file"])
def test_flags_of_an_import_alone(flag: str, call: Call) -> None:
    assert call("lock", "--cuda", "cpu", flag, "x").status == 2


def test_the_cuda_of_the_torch_that_a_file_pins(family: Index, call: Call) -> None:
    Path("requirements.txt").write_text("torch==2.4.0\nnumpy==1.26.4\n")
    said = call("lock", "--from", "requirements.txt")
    assert said.status == 0, said.err
    assert "taking CUDA 12.1: torch 2.4.0 is built for it" in said.err
    assert (request("work").cuda, pins("work")["torch"]) == ("12.1", "2.4.0")
    # Again, with a torch on the index that is newer: what the request has stays.
    assert call("lock", "--from", "requirements.txt").status == 0
    Path("setup.py").write_text(
        "from setuptools import setup\nsetup(name='ours', install_requires=['torch>=2,<2.6'])\n"
    )
    assert call("lock", "--from", "setup.py").status == 0
    assert (request("ours").cuda, pins("ours")["torch"]) == ("12.1", "2.4.1")
    Path("any.txt").write_text("torch\n")
    assert call("lock", "--from", "any.txt").status == 0
    assert (request("any").cuda, pins("any")["torch"]) == ("13.0", "2.9.0")
    Path("none.txt").write_text("numpy==1.26.4\n")
    said = call("lock", "--from", "none.txt")
    assert said.status == 0, said.err
    assert "the newest that none.txt allows; --cuda takes another, or cpu" in said.err
    assert (request("none").cuda, pins("none")["torch"]) == ("13.0", "2.9.0")


def test_another_cuda_where_the_newest_torch_does_not_fit_the_others(family: Index, call: Call) -> None:
    family.add("vision", "0.21", requires=["torch==2.6.0"])
    Path("requirements.txt").write_text("torch>=2\nvision\n")
    for taken in (True, False):  # the second time its request is there
        said = call("lock", "--from", "requirements.txt")
        assert said.status == 0, said.err
        assert ("taking CUDA" in said.err) == taken
    assert (request("work").cuda, pins("work")["torch"]) == ("12.4", "2.6.0")
    # Who asks for one gets that or an error.
    said = call("lock", "--from", "requirements.txt", "--cuda", "13.0", "--name", "x")
    assert (said.status, "give --cuda 12.4" in said.err) == (5, True)
    # Nor is a request that is there locked for another CUDA than it says.
    asked = Path("envs/work.toml").read_text()
    assert asked.count('cuda = "12.4"') == 1
    Path("envs/work.toml").write_text(asked.replace('cuda = "12.4"', 'cuda = "13.0"'))
    assert call("lock", "--from", "requirements.txt").status == 5


def test_a_torch_that_this_python_lacks_names_one_that_has_it(family: Index, call: Call) -> None:
    family.add("torch", "1.9.1", tag="cp39-cp39-manylinux1_x86_64")
    Path("requirements.txt").write_text("torch==1.9.1\n")
    said = call("lock", "--from", "requirements.txt")
    assert said.status == 3
    assert "the index has no torch ==1.9.1 for Python 3.11 on x86_64" in said.err
    assert "give --python 3.9" in said.err
    Path("requirements.txt").write_text("torch==1.3.1\n")
    assert "--loosen torch to take the newest" in call("lock", "--from", "requirements.txt").err
    assert call("lock", "--from", "requirements.txt", "--loosen", "torch").status == 0
    # A file that does not name torch has nothing to loosen.
    Path("none.txt").write_text("numpy\n")
    said = call("lock", "--from", "none.txt", "--python", "3.8")
    assert (said.status, "no torch for Python 3.8 on x86_64" in said.err) == (3, True)
    assert "--loosen" not in said.err


def test_of_several_wheels_of_a_version_the_one_that_was_locked_stays(family: Index, call: Call) -> None:
    first = family.add("again", "1.0", tag="1-py3-none-any")
    Path("requirements.txt").write_text(f"torch==2.4.0\nagain==1.0 --hash=sha256:{first.sha256}\n")
    assert call("lock", "--cuda", "12.1", "--package", "again", "--name", "flags").status == 0
    family.add("again", "1.0", tag="2-py3-none-any", requires=["filelock"])
    said = call("lock", "--from", "requirements.txt")
    assert said.status == 0, said.err
    assert call("lock", "flags").status == 0
    for name in ("work", "flags"):
        lock = parse_lock(Path(f"envs/pylock.{name}.toml").read_text(), "")
        assert [p.wheel.filename for p in lock.python if p.name == "again"] == [first.name]
    assert call("lock", "--upgrade", "again", "flags").status == 0
    assert "again-1.0-2-py3" in Path("envs/pylock.flags.toml").read_text()


@pytest.mark.parametrize(
    ("pin", "says"),
    [("never-published==1", "was not found"), ("filelock==9", "there is no version of filelock==9")],
)
def test_what_no_index_has_is_no_contradiction(family: Index, call: Call, pin: str, says: str) -> None:
    Path("requirements.txt").write_text(f"packaging\n{pin}\n")
    said = call("lock", "--from", "requirements.txt", "--cuda", "12.1")
    assert said.status == 5
    assert says in said.err
    assert "contradicts itself" not in said.err
    assert f"{pin.partition('=')[0]} is asked for in requirements.txt:2" in said.err
