"""The embedded engine on a small image whose programs really run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import needs
from reprobuild.engines.embedded import OciEngine
from reprobuild.errors import HostError, ImageError
from reprobuild.host import process, sandbox
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from support.locks import LOCK
from support.small_root import small_image

pytestmark = pytest.mark.core

CONSOLE = Console(quiet=True)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    needs("crun")
    return Home(tmp_path / "home")


@pytest.fixture
def engine(home: Home) -> OciEngine:
    return OciEngine(Host(home, CONSOLE))


@pytest.fixture
def digest(home: Home) -> str:
    return small_image(home)


def run(engine: OciEngine, digest: str, *argv: str, **changes: Any) -> int:
    settings: dict[str, Any] = {"env": {}, "binds": [], "network": False, "gpu": None, "workdir": None}
    return engine.run(digest, argv, **{**settings, **changes})


def test_the_image_s_own_command(engine: OciEngine, digest: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(engine, digest) == 0
    assert capfd.readouterr().out == "above\n"


def test_status_environment_folder_and_binds(
    engine: OciEngine, digest: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = "echo $OMP_NUM_THREADS $MKL_DYNAMIC $MORE; pwd; echo x > /out/file; exit 42"
    bind = sandbox.Bind(source=tmp_path, destination="/out", writable=True)
    env = {"MORE": "more", "MKL_DYNAMIC": "mine"}
    assert run(engine, digest, "bash", "-c", script, env=env, binds=[bind], workdir="/usr") == 42
    assert capfd.readouterr().out.splitlines() == [f"{LOCK.variables['OMP_NUM_THREADS']} mine more", "/usr"]
    assert (tmp_path / "file").read_text() == "x\n"


def test_what_a_run_writes_is_gone_afterwards(engine: OciEngine, home: Home, digest: str) -> None:
    assert run(engine, digest, "bash", "-c", "echo x > /new; mkdir -m 0 /shut; echo y > /etc/who") == 0
    assert run(engine, digest, "bash", "-c", "test ! -e /new && test ! -e /shut") == 0
    assert [*home.folder("tmp").iterdir()] == []
    assert run(engine, digest, "bash", "-c", "read -r who < /etc/who; test $who = above") == 0


def test_the_names_of_hosts_are_those_of_this_machine(
    engine: OciEngine, digest: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(engine, digest, "cat", "/etc/hosts", network=True) == 0
    assert capfd.readouterr().out == Path("/etc/hosts").read_text()
    assert run(engine, digest, "cat", "/etc/hosts") == 1


def test_a_program_that_is_missing(engine: OciEngine, home: Home, digest: str) -> None:
    with pytest.raises(HostError, match="python9 could not be started in the image"):
        run(engine, digest, "python9")
    assert [*home.folder("tmp").iterdir()] == []


def test_an_image_is_unpacked_once(engine: OciEngine, digest: str) -> None:
    assert run(engine, digest, "sh", "-c", "true") == 0
    for blob, _ in engine.images.layers(digest):
        blob.unlink()
    assert run(engine, digest, "sh", "-c", "true") == 0


@pytest.mark.parametrize("harm", ["gone", "rubbish"])
def test_a_damaged_image_is_not_run(engine: OciEngine, home: Home, digest: str, harm: str) -> None:
    blob, _ = engine.images.layers(digest)[0]
    blob.unlink()
    if harm == "rubbish":
        blob.write_bytes(b"rubbish")
    with pytest.raises(ImageError):
        run(engine, digest, "sh", "-c", "true")
    assert [*home.folder("roots").iterdir()] in (
        [],
        [home.root / "roots" / engine.images.layers(digest)[1][1][7:]],
    )
    assert [*home.folder("tmp").iterdir()] == []


def test_the_self_test_s_runner_gives_nothing_away(engine: OciEngine, home: Home, digest: str) -> None:
    script = "cat /etc/who; cat /proc/net/route | { read -r _; read -r x || echo no route; }; echo x > /new"
    done = engine.runner(digest).run(["bash", "-c", script], timeout=30, gpu=False)
    assert (done.returncode, done.stdout) == (1, b"above\nno route\n")
    assert b"Read-only file system" in done.stderr
    assert [*home.folder("tmp").iterdir()] == []


def test_the_self_test_s_runner_keeps_the_time_limit(engine: OciEngine, home: Home, digest: str) -> None:
    with pytest.raises(process.ProcessTimeout):
        engine.runner(digest).run(["sleep", "60"], timeout=1, gpu=False)
    assert [*home.folder("tmp").iterdir()] == []


def test_the_command_s_status_and_output_are_the_program_s(
    home: Home, engine: OciEngine, digest: str
) -> None:
    engine.images.name(digest, "team/small:1")
    script = "read -r x; echo got $x; echo talk >&2; exit 5"
    code = f"import sys; sys.argv = ['reprobuild', 'run', 'team/small:1', 'bash', '-c', {script!r}];"
    done = subprocess.run(
        [sys.executable, "-c", f"{code} from reprobuild.cli import main; main()"],
        env={**os.environ, "REPROBUILD_HOME": str(home.root)},
        input=b"it\n",
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (5, b"got it\n")
    assert done.stderr.endswith(b"talk\n")
