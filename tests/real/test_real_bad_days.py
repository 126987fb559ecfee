"""Bad days of a real build: killed, out of disk, without its tools, twice at once, with a test that fails.

The image is the smallest real one: PyTorch for the CPU, from an index on loopback beside the user's own. Each
test ends with a build that works.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from reprobuild.errors import HostError, SelfTestError, StorageError
from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.lock.packages import DebianPackage, Wheel
from reprobuild.pipeline.workspace import read_lock
from support.bench import NAME, Bench, until
from support.disk import tiny_disk

pytest_plugins = ["support.shared"]
pytestmark = pytest.mark.slow


def test_interrupted_and_killed_half_way(bench: Bench, digest: str) -> None:
    """Again and again, later each time: each goes on with what the one before left."""
    bench.forget_layers()
    process = bench.start("image", bench.lock)
    until(bench.leftovers, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert err.decode().splitlines()[-1] == "reprobuild: stopped"
    assert bench.leftovers() == []
    moments: list[Callable[[], object]] = [
        bench.leftovers,
        lambda: list((bench.home / "layers").glob("*.json")),
        lambda: len(list((bench.home / "layers").glob("*.json"))) > 1,
    ]
    for moment in moments:
        process = bench.start("image", bench.lock)
        until(moment, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert bench.images() == []
    assert bench.build() == digest
    assert bench.leftovers() == []


def test_two_builds_at_once(bench: Bench, digest: str) -> None:
    bench.forget_torch()
    both = [bench.start("image", bench.lock, "--json") for _ in range(2)]
    results = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], results
    assert {json.loads(out)["digest"] for out, _ in results} == {digest}
    assert sum(b"waiting for another reprobuild" in err for _, err in results) == 1
    assert [image["names"] for image in bench.images()] == [[NAME]]


def locked(bench: Bench) -> Sequence[Wheel | DebianPackage]:
    """Return all that the lock names."""
    lock = read_lock(bench.folder / bench.lock)
    return [*(package.wheel for package in lock.python), *lock.debian]


def test_a_full_disk(bench: Bench, digest: str) -> None:
    with tiny_disk(bench.folder / "small", 700 << 20) as small:
        store, copy = Store(Home(bench.home)), Store(Home(small))
        for each in locked(bench):  # other tests may have put more there
            path = copy.path(each.sha256)
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(store.path(each.sha256), path)
        _, err = bench.run(
            "image", bench.lock, status=StorageError.exit_code, env={"REPROBUILD_HOME": str(small)}
        )
        assert "No space left on device" in err
        assert "reprobuild clean" in err
        assert bench.images(REPROBUILD_HOME=str(small)) == []
        assert [*(small / "tmp").iterdir()] == []
        # With room again, the same command goes on with what is there.
        subprocess.run(["mount", "-o", "remount,size=4g", str(small)], check=True)
        assert bench.build(REPROBUILD_HOME=str(small)) == digest


@pytest.mark.parametrize(
    ("missing", "hint"),
    [("mmdebstrap", "apt-get install -y mmdebstrap"), ("crun runc", "apt-get install -y crun")],
)
def test_without_its_tools(bench: Bench, tmp_path: Path, missing: str, hint: str) -> None:
    """Said before a byte is fetched."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for folder in ("/usr/bin", "/usr/sbin"):
        for program in Path(folder).iterdir():
            if program.name not in missing.split() and not (tools / program.name).exists():
                (tools / program.name).symlink_to(program)
    code = "import sys, reprobuild.host.process as p; p.which = lambda n, w=p.shutil.which: w(n);"
    code += "from reprobuild.cli import main; sys.argv = sys.argv[:1] + sys.argv[2:]; main()"
    empty = tmp_path / "home"
    done = subprocess.run(
        [sys.executable, "-c", code, "-", "image", bench.lock],
        cwd=bench.folder,
        env={**bench.env, "PATH": str(tools), "REPROBUILD_HOME": str(empty)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == HostError.exit_code, done.stderr
    assert hint in done.stderr
    assert not (empty / "store").exists()


def test_an_image_that_fails_its_test_gets_no_name(bench: Bench, digest: str, tmp_path: Path) -> None:
    """The image is really another one: reprobuild itself is changed in a copy, as a bad release would be."""
    copy = tmp_path / "src"
    import reprobuild

    source = Path(reprobuild.__file__).parent
    shutil.copytree(source, copy / "reprobuild", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "reprobuild/in_image/reprobuild.pth").write_text("")
    _, err = bench.run("image", bench.lock, status=SelfTestError.exit_code, env={"PYTHONPATH": str(copy)})
    assert "setting-hook" in err
    images = bench.images()
    assert [image["digest"] for image in images if image["names"]] == [digest]
