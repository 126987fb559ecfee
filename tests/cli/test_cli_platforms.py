"""One lock for linux/amd64 and linux/arm64: made, kept, installed from, read by all commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import uv

from reprobuild.lock.model import Lock
from reprobuild.lock.platforms import parse_locks
from support.index import Index
from support.two_platforms import ARM, BOTH

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.family", "support.two_platforms"]

FILE = Path("envs/pylock.torch-cu121.toml")


def locks(file: Path = FILE) -> dict[str, Lock]:
    return {lock.platform: lock for lock in parse_locks(file.read_text(), str(file))}


def versions(lock: Lock) -> dict[str, str]:
    return {p.name: p.version for p in lock.python}


def test_one_file_with_a_lock_each(both: Index, call: Call) -> None:
    said = call("lock", "--cuda", "12.1", *BOTH)
    assert said.status == 0, said.err
    assert [line for line in said.out.splitlines() if line.startswith("envs/")] == [
        f"{FILE}, linux/amd64: new",
        f"{FILE}, linux/arm64: new",
    ]
    amd, arm = locks().values()
    assert versions(arm) == {**versions(amd), "only-there": "1.0"}
    assert {p.architecture for p in arm.debian} == {"arm64"}
    assert {p.architecture for p in amd.debian} == {"amd64"}
    torch = next(p.wheel.filename for p in arm.python if p.name == "torch")
    assert torch == f"torch-2.4.1-{ARM}.whl"
    before = FILE.read_bytes()
    said = call("lock", "torch-cu121")
    assert (said.out.count("unchanged"), FILE.read_bytes()) == (2, before)
    facts = json.loads(call("lock", "--check", "--json").out)
    assert [fact["platform"] for fact in facts] == ["linux/amd64", "linux/arm64"]


def test_the_second_takes_the_versions_of_the_first(both: Index, call: Call) -> None:
    both.add("numpy", "2.2.0", tag=ARM)
    assert call("lock", "--cuda", "12.1", "--package", "numpy", *BOTH).status == 0
    assert {versions(lock)["numpy"] for lock in locks().values()} == {"2.1.0"}


def test_what_a_platform_lacks_is_named_with_it(arm: Index, call: Call) -> None:
    said = call("lock", "--cuda", "12.1", *BOTH)
    assert said.status == 5
    assert "linux/arm64: no torch for Python 3.11 on aarch64" in said.err
    assert "take linux/arm64 out of the request's platforms" in said.err
    assert not Path("envs").exists()
    said = call("lock", "--cuda", "cpu", "--platform", "linux/arm64")
    assert said.status == 0, said.err
    assert "linux/amd64" not in locks(Path("envs/pylock.torch-cpu.toml"))
    said = call("lock", "--cuda", "cpu", *BOTH, "--name", "a")
    assert said.status == 5
    assert "linux/amd64: the index serves only CUDA builds" in said.err


def test_a_platform_that_is_added_leaves_the_other_as_it_is(both: Index, call: Call) -> None:
    assert call("lock", "--cuda", "12.1").status == 0
    alone = next(iter(locks().values()))
    both.add("filelock", "9.0")
    request = Path("envs/torch-cu121.toml")
    request.write_text('platforms = ["linux/arm64", "linux/amd64"]\n' + request.read_text())
    said = call("lock", "--check")
    assert said.status == 4
    assert "platforms" in said.err
    said = call("lock")
    assert said.status == 0, said.err
    assert versions(locks()["linux/amd64"]) == versions(alone)
    assert {versions(lock)["filelock"] for lock in locks().values()} == {"1.1"}
    assert "linux/amd64: changed" in said.out
    assert "linux/arm64: new" in said.out
    said = call("lock", "--upgrade", "only-there", "torch-cu121")
    assert said.status == 0, said.err
    said = call("lock", "--upgrade", "nowhere", "torch-cu121")
    assert (said.status, "nowhere cannot be upgraded" in said.err) == (5, True)


def test_a_file_with_one_of_two_fails_the_check(both: Index, call: Call) -> None:
    assert call("lock", "--cuda", "12.1", *BOTH).status == 0
    FILE.write_text(locks()["linux/amd64"].dump())
    said = call("lock", "--check")
    assert (said.status, f"{FILE}: lacks linux/arm64" in said.err) == (4, True)
    said = call("render", str(FILE), "-o", "ctx", "--no-artifacts", "--platform", "linux/arm64")
    assert (said.status, f"{FILE} has no lock for linux/arm64; it has linux/amd64" in said.err) == (4, True)


@pytest.mark.parametrize(
    "argv",
    [["--cuda", "12.1", "--platform", "linux/riscv64"], ["--cuda", "12.1", "--platform", "amd64"]],
)
def test_an_unknown_platform(both: Index, call: Call, argv: list[str]) -> None:
    said = call("lock", *argv)
    assert said.status == 3
    assert "--platform: " in said.err
    assert "is not one of linux/amd64, linux/arm64" in said.err


def test_each_can_be_rendered_and_compared(both: Index, call: Call) -> None:
    assert call("lock", "--cuda", "12.1", *BOTH).status == 0
    for which in ("linux/amd64", "linux/arm64"):
        said = call("render", "torch-cu121", "-o", which, "--no-artifacts", "--platform", which)
        assert said.status == 0, said.err
        assert f"--platform {which}" in Path(which, "Dockerfile").read_text()
        inside = Path(which, "reprobuild/pylock.toml").read_text()
        assert parse_locks(inside, "inside") == (locks()[which],)
        said = call("convert", str(FILE), "--to", "explicit", "--platform", which)
        assert ("aarch64" in said.out, "x86_64" in said.out) == (
            which == "linux/arm64",
            which != "linux/arm64",
        )
    # Without a word it is this machine's.
    assert call("convert", str(FILE), "--to", "explicit").out.count("x86_64") == 3
    assert call("diff", str(FILE), "torch-cu121").out == "the same\n"
    both.add("only-there", "2.0")
    both.add("filelock", "2.0")
    Path("old.toml").write_bytes(FILE.read_bytes())
    assert call("lock", "--upgrade", "only-there", "--upgrade", "filelock", "torch-cu121").status == 0
    changes = json.loads(call("diff", "old.toml", str(FILE), "--json").out)["changes"]
    assert [(c["name"], c["old"], c["new"]) for c in changes] == [
        ("filelock", "1.1", "2.0"),
        ("only-there (linux/arm64)", "1.0", "2.0"),
    ]


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="uv installs a lock for Python 3.11 by a Python 3.11 alone"
)
def test_uv_installs_from_it(both: Index, call: Call, tmp_path: Path) -> None:
    assert call("lock", "--cuda", "12.1", *BOTH).status == 0
    for machine, more in (("x86_64", set()), ("aarch64", {"only_there"})):
        target = tmp_path / machine
        command = [uv.find_uv_bin(), "pip", "install", "--target", str(target), "--no-cache", "--no-config"]
        command += ["--python-version", "3.11", "--python-platform", f"{machine}-manylinux_2_36"]
        done = subprocess.run(
            [*command, "--require-hashes", "-r", str(FILE)],
            env={**os.environ, "UV_NO_CACHE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found = {path.parent.name for path in target.glob("*/__init__.py")}
        assert found == {"torch", "numpy", "pip", "filelock", "nvidia_cuda_runtime_cu12", *more}


def test_the_conflicts_of_a_merge(both: Index, call: Call) -> None:
    """Pins that both sides have stay, on each platform; the rest is resolved for the merged request."""
    for name in ("one", "two", "shared"):
        both.add(name, "1.0")
    request = Path("envs/torch-cu121.toml")
    sides = {}
    for side, packages in (("base", []), ("ours", ["one"]), ("theirs", ["two"])):
        FILE.unlink(missing_ok=True)
        request.unlink(missing_ok=True)
        added = [option for name in ("shared", *packages) for option in ("--package", name)]
        assert call("lock", "--cuda", "12.1", *BOTH, *added).status == 0
        sides[side] = Path(f"{side}.toml")
        sides[side].write_text(FILE.read_text())
    command = ["git", "merge-file", "-p", *(str(sides[side]) for side in ("ours", "base", "theirs"))]
    merged = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    assert "<<<<<<<" in merged
    FILE.write_text(merged)
    request.write_text(request.read_text().replace('"two"', '"one", "two"'))
    both.add("shared", "2.0")
    said = call("lock")
    assert said.status == 0, said.err
    assert "has conflicts of a merge; pins that both sides have stay" in said.err
    for lock in locks().values():
        assert versions(lock).keys() >= {"one", "two"}
        assert versions(lock)["shared"] == "1.0"
    assert call("lock", "--check").status == 0
    FILE.write_text(merged.replace("[tool.reprobuild.platforms.", "[tool.reprobuild.platform."))
    said = call("lock")
    assert said.status == 4
    assert f"{FILE}: ours of a merge: not a lock of reprobuild's" in said.err
