"""The embedded engine on a small image whose programs really run."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import needs
from reprobuild.engines.embedded import OciEngine, OciRunner
from reprobuild.engines.protocols import RunOptions
from reprobuild.errors import HostError, ImageError
from reprobuild.host import process, sandbox
from reprobuild.host.console import Console
from reprobuild.host.control_groups import places
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.oci.file_tree import nothing
from reprobuild.pipeline.preflight.doctor import examine
from reprobuild.request.image_user import ImageUser
from support.disk import overlaid
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
    return engine.run(digest, argv, RunOptions(**changes))


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


def test_a_program_can_look_up_its_own_name_and_those_of_this_machine(
    engine: OciEngine, digest: str, capfd: pytest.CaptureFixture[str]
) -> None:
    own = "127.0.0.1\tlocalhost reprobuild\n::1\tlocalhost ip6-localhost ip6-loopback\n"
    assert run(engine, digest, "cat", "/etc/hosts", network=True) == 0
    assert capfd.readouterr().out == own + Path("/etc/hosts").read_text()
    assert run(engine, digest, "cat", "/etc/hosts") == 0
    assert capfd.readouterr().out == own
    for name in ("localhost", "reprobuild"):  # nothing listens there, and it answers
        assert run(engine, digest, "bash", "-c", f"exec 3<>/dev/tcp/{name}/9") == 1
        assert "Connection refused" in capfd.readouterr().err


def test_a_program_that_is_missing(engine: OciEngine, home: Home, digest: str) -> None:
    with pytest.raises(HostError, match="python9 could not be started in the image"):
        run(engine, digest, "python9")
    assert [*home.folder("tmp").iterdir()] == []


def test_a_home_to_which_overlayfs_cannot_write(home: Home, digest: str, tmp_path: Path) -> None:
    """As in a container whose home is no volume."""
    with overlaid(tmp_path, home.root) as place:
        seen = Host(Home(place), CONSOLE)
        with pytest.raises(HostError, match="could not be stacked") as caught:
            run(OciEngine(seen), digest, "sh", "-c", "true")
        assert "is on overlay, to which overlayfs cannot write: set REPROBUILD_HOME" in caught.value.hint
        (disk,) = (found for found in examine(None, seen) if found.name == "disk")
        assert (disk.good, disk.text.rpartition(", ")[2]) == (False, "where no image is built or run")
        assert disk.hint.startswith(f"{place} is on overlay,")
    assert sandbox.unstackable(home.root) == ""


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
    assert [path for path in home.folder("roots").iterdir() if path.is_dir()] in (
        [],
        [home.root / "roots" / engine.images.layers(digest)[1][1][7:]],
    )
    assert [*home.folder("tmp").iterdir()] == []


@pytest.mark.parametrize("asked", ["check", "a test that fails", "a program that does not start"])
def test_what_the_disk_changed_in_an_unpacked_layer_decides_nothing(
    engine: OciEngine, home: Home, digest: str, capsys: pytest.CaptureFixture[str], asked: str
) -> None:
    """Neither its size nor its time tells. By it, a test would fail that gives an image its name."""
    runner, argv = engine.runner(digest), ["bash", "-c", "read -r who < /etc/who; test $who = above"]
    assert runner.run(argv, timeout=30, gpu=False).returncode == 0
    path = "usr/bin/bash" if "start" in asked else "etc/who"
    found = (
        home.root / "roots" / diff_id[7:] / path for _, diff_id in reversed(engine.images.layers(digest))
    )
    file = next(each for each in found if each.exists())
    status = file.stat()
    with file.open("r+b") as opened:
        opened.write(b"abate")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    if asked == "check":
        engine.verify_unpacked(digest, engine.images.tree(digest, "", nothing).files)
        assert file.read_text() == "above\n"
    assert runner.run(argv, timeout=30, gpu=False).returncode == 0
    assert f"{file}: its bytes are not those of the image" in capsys.readouterr().err
    assert runner.run(["bash", "-c", "false"], timeout=30, gpu=False).returncode != 0
    assert capsys.readouterr().err == ""


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


# --- Signals, the terminal and users ---


def command(*options: str, init: bool = False) -> list[str]:
    """Call `run` as a user does; ``init``: with Python in the image, and so with a first process of ours."""
    binds = ["-v", "/usr:/usr:ro"] if init else []
    return [str(Path(sys.executable).with_name("reprobuild")), "run", *binds, *options]


@pytest.fixture(params=[False, True], ids=["alone", "init"])
def init(request: pytest.FixtureRequest, home: Home) -> bool:
    """An image with a name; with or without Python, which is this machine's."""
    if request.param and not Path("/usr/bin/python3").exists():
        needs("/usr/bin/python3")
    name(home, **({"opt/venv/bin/python3": "/usr/bin/python3"} if request.param else {}))
    return bool(request.param)


def name(home: Home, **more: Any) -> None:
    OciEngine(Host(home, CONSOLE)).images.name(small_image(home, **more), "team/small:1")


def begun(home: Home, *argv: str, init: bool) -> subprocess.Popen[str]:
    """Start a command that says "ready" when it is."""
    process = subprocess.Popen(
        [*command("team/small:1", init=init), *argv],
        env={**os.environ, "REPROBUILD_HOME": str(home.root)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("script", "status"),
    [("echo ready; exec sleep 60", None), ("trap 'exit 9' INT TERM; echo ready; sleep 60 & wait", 9)],
    ids=["left alone", "caught"],
)
def test_a_signal_ends_the_command(
    home: Home, init: bool, number: signal.Signals, script: str, status: int | None
) -> None:
    with begun(home, "bash", "-c", script, init=init) as process:
        process.send_signal(number)
        process.communicate(timeout=30)
    assert process.returncode == (128 + number if status is None else status)
    assert [*home.folder("tmp").iterdir()] == []


def test_a_signal_that_is_ignored_ends_nothing(home: Home, init: bool) -> None:
    script = "trap '' TERM; echo ready; read -r -t 1 < /dev/zero; sleep 0.5; exit 5"
    with begun(home, "bash", "-c", script, init=init) as process:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 5


@pytest.mark.usefixtures("init")
def test_a_signal_that_is_blocked_waits(home: Home) -> None:
    """The first process of ours blocks all of them until it can pass them on."""
    if not Path("/usr/bin/python3").exists():
        needs("/usr/bin/python3")
    script = (
        "import signal, time; from signal import SIGTERM;"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [SIGTERM]);"
        "print('ready', flush=True)\nwhile SIGTERM not in signal.sigpending(): time.sleep(0.01)\nexit(5)"
    )
    with begun(home, "/usr/bin/python3", "-c", script, init=True) as process:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 5


def test_ctrl_c_on_a_terminal_ends_the_command(home: Home) -> None:
    if not Path("/usr/bin/python3").exists():
        needs("/usr/bin/python3")
    name(home, **{"opt/venv/bin/python3": "/usr/bin/python3"})
    argv = command("-it", "--rm", "team/small:1", init=True)
    child, terminal = pty.fork()
    if child == 0:
        os.environ["REPROBUILD_HOME"] = str(home.root)
        os.execv(argv[0], [*argv, "bash", "-c", "echo ready; exec sleep 60"])
    said = b""
    while b"ready" not in said:
        said += os.read(terminal, 1024)
    os.write(terminal, b"\x03")
    with suppress(OSError):  # its other end is closed
        while os.read(terminal, 1024):
            pass
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 130
    os.close(terminal)


def test_another_user(home: Home, digest: str, engine: OciEngine, capfd: pytest.CaptureFixture[str]) -> None:
    if os.geteuid() != 0:
        needs("newuidmap")
    assert run(engine, digest, "bash", "-c", "id -u; id -g; echo x > /tmp/a", user="1000:1001") == 0
    assert capfd.readouterr().out == "1000\n1001\n"
    assert run(engine, digest, "bash", "-c", "echo x > /etc/who", user="1000:1001") == 1


def test_the_image_s_own_user(home: Home, engine: OciEngine, capfd: pytest.CaptureFixture[str]) -> None:
    if os.geteuid() != 0:
        needs("newuidmap")
    lock = replace(LOCK, request=replace(LOCK.request, user=ImageUser("app", 1000)))
    passwd = b"root:x:0:0::/root:/bin/sh\napp:*:1000:1000::/home/app:/bin/bash\n"
    digest = small_image(home, lock, **{"etc/passwd": passwd, "home/app/file": b""})
    script = 'id -u; id -g; pwd; echo "$HOME"'
    own = ["1000", "1000", "/home/app", "/home/app"]
    assert run(engine, digest, "bash", "-c", script) == 0
    assert capfd.readouterr().out.split() == own
    tested = OciRunner(Host(home, CONSOLE), engine.images, digest).run(
        ["bash", "-c", script], timeout=60, gpu=False
    )
    assert tested.stdout.decode().split() == own
    assert run(engine, digest, "id", "-u", user="0:0") == 0
    assert capfd.readouterr().out == "0\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "/root:"),
        (["--user", "me"], "/home/me:"),
        (["--user", "4321"], "/:uid_4321"),
        (["--user", "me", "-e", "HOME=/x"], "/x:"),
    ],
)
def test_home_is_that_of_the_user_and_one_without_a_name_gets_one(
    home: Home, init: bool, options: list[str], said: str
) -> None:
    if os.geteuid() != 0:
        needs("newuidmap")
    python = {"opt/venv/bin/python3": "/usr/bin/python3"} if init else {}
    name(home, **{"etc/passwd": b"root:x:0:0::/root:\nme:x:1000:1000::/home/me:\n"}, **python)
    argv = [*command(*options, "team/small:1", init=init), "bash", "-c", "echo $HOME:$USER"]
    env = {**os.environ, "REPROBUILD_HOME": str(home.root)}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    assert done.stdout == f"{said}\n"


def test_a_run_that_is_killed_for_its_memory_says_so(home: Home) -> None:
    if not any("memory" in place.controllers for place in places()):
        pytest.skip("no control group can hold a run's memory here")
    name(home)
    env = {**os.environ, "REPROBUILD_HOME": str(home.root)}

    def run_with(memory: str, script: str) -> subprocess.CompletedProcess[str]:
        argv = [*command("--memory", memory, "team/small:1"), "bash", "-c", script]
        return subprocess.run(argv, env=env, capture_output=True, text=True, check=False)

    done = run_with("64M", "printf -v a %0200000000d 0")
    assert done.returncode == 137
    assert (
        done.stderr
        == "warning: a process was killed, since the run took more than 64 MiB of memory (--memory)\n"
    )
    done = run_with("1G", "exit 137")
    assert (done.returncode, done.stderr) == (137, "")


def test_the_machine_s_certificates_are_passed_in_with_the_network(home: Home, digest: str) -> None:
    OciEngine(Host(home, CONSOLE)).images.name(digest, "team/small:1")
    bundle = home.root / "ca.pem"
    bundle.write_text("mine\n")
    env = {**os.environ, "REPROBUILD_HOME": str(home.root), "REQUESTS_CA_BUNDLE": str(bundle)}
    script = "cat $PIP_CERT $SSL_CERT_FILE; echo $REQUESTS_CA_BUNDLE"

    def said(*options: str) -> str:
        argv = [*command(*options, "team/small:1"), "bash", "-c", script]
        return subprocess.run(argv, env=env, capture_output=True, text=True, check=False).stdout

    assert said() == "mine\nmine\n/run/reprobuild/ca-certificates.crt\n"
    assert said("-e", "REQUESTS_CA_BUNDLE=/mine").endswith("/mine\n")
    assert said("--no-network") == "\n"
