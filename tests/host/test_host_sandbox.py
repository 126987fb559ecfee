"""What the sandbox promises, on each runtime, as root and as an ordinary user; all of it for real."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reprobuild.host.control_groups import places
from support.boxes import Box, held
from support.waiting import settles

if TYPE_CHECKING:
    from support.people import Person  # pytest itself imports the plugin

pytest_plugins = ["support.people", "support.boxes"]


@pytest.fixture(autouse=True)
def _nothing_is_left(box: Box) -> Iterator[None]:
    yield
    assert box.leftovers() == []


def test_status_and_output_come_back(box: Box) -> None:
    found = box.run("bash", "-c", "echo out; echo err >&2; exit 3")
    assert (found["status"], found["out"], found["err"]) == (3, "out\n", "err\n")
    assert box.run("bash", "-c", "(kill -SEGV $BASHPID); exit $?")["status"] == 128 + 11


def test_the_program_is_root_and_alone(box: Box) -> None:
    assert box.sh("id -u; id -g; echo $$").split() == ["0", "0", "1"]
    assert box.sh("echo /proc/[0-9]*") == "/proc/1\n"
    assert box.sh("cat /proc/sys/kernel/hostname") == "reprobuild\n"


def test_it_sees_the_image_and_nothing_of_the_host(box: Box) -> None:
    assert sorted(box.sh("ls /").split()) == sorted(
        {"bin", "etc", "home", "usr", "dev", "proc", "sys", "tmp", *(p.name for p in box.root.iterdir())}
    )
    assert box.sh("ls /etc; ls -A /home /tmp /dev/shm") == "who\n/dev/shm:\n\n/home:\n\n/tmp:\n"


def test_a_higher_layer_wins(box: Box) -> None:
    higher = [box.folder("middle"), box.folder("top")]
    for folder in higher:
        (folder / "etc").mkdir(mode=0o755)
        (folder / "etc/who").write_text(f"{folder.name}\n")
    (higher[0] / "etc/more").write_text("more\n")
    said = box.sh("cat /etc/who /etc/more", layers=[str(folder) for folder in higher])
    assert said == f"{higher[1].name}\nmore\n"


def test_environment_and_folder_are_those_of_the_task(box: Box) -> None:
    said = box.run("env", env={"A": "1=2", "TEXT": "é ü"}, cwd="/home")["out"].splitlines()
    # The runtime may set HOME where nobody else does.
    assert {line for line in said if not line.startswith("HOME=")} == {"PATH=/usr/bin", "A=1=2", "TEXT=é ü"}
    assert box.sh("pwd", cwd="/usr/bin") == "/usr/bin\n"


def test_the_umask_shuts_no_user_of_the_program_out(box: Box) -> None:
    found = box.run("ls", "-ld", "/", before=["sh", "-c", 'umask 077; exec "$@"', "sh"], writable=True)
    assert found["out"].startswith("drwxr-xr-x")


def test_the_root_is_read_only_and_tmp_is_not(box: Box) -> None:
    for path in ("/new", "/etc/who", "/usr/bin/new", "/proc/sys/kernel/hostname"):
        found = box.run("bash", "-c", f"echo x > {path}")
        assert found["status"] == 1
        assert "Read-only file system" in found["err"]
    assert box.sh("echo x > /tmp/a; echo y > /dev/shm/b; cat /tmp/a /dev/shm/b") == "x\ny\n"


def test_what_a_writable_root_takes_stays_out_of_the_layers(box: Box) -> None:
    found = box.run(
        "bash", "-c", "echo new > /etc/who; echo x > /usr/new; mkdir -m 0 /home/shut", writable=True
    )
    assert found["status"] == 0, found
    assert {"etc/who", "usr/new", "home/shut"} <= set(found["upper"])
    assert box.sh("cat /etc/who") == "below\n"
    assert not (box.root / "usr/new").exists()


@pytest.fixture
def listener() -> Iterator[int]:
    """A port of the host's loopback that takes connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_there_is_no_network(box: Box, listener: int) -> None:
    connect = f"exec 3<>/dev/tcp/127.0.0.1/{listener}"
    found = box.run("bash", "-c", connect)
    assert found["status"] != 0
    devices = box.sh("cat /proc/net/dev").splitlines()[2:]
    assert [line.split(":")[0].strip() for line in devices if "lo:" in line] == ["lo"]
    assert box.sh("cat /proc/net/route").splitlines()[1:] == []
    # The same attempt works with the host's network, so it is the network that is missing.
    assert box.sh(f"{connect} && echo through", network="host") == "through\n"


def test_binds(box: Box) -> None:
    shared, single = box.folder("shared"), box.folder("single") / "file"
    (shared / "a").write_text("a\n")
    single.write_text("one\n")
    for path in (shared, shared / "a", single):
        os.chown(path, box.person.uid, box.person.gid)
    both = [
        (str(shared), "/rw", True),
        (str(shared), "/deep/down/ro", False),
        (str(single), "/etc/one", False),
    ]
    assert box.sh("echo b > /rw/b; cat /deep/down/ro/a /deep/down/ro/b /etc/one", binds=both) == "a\nb\none\n"
    assert (shared / "b").read_text() == "b\n"
    assert (shared / "b").stat().st_uid == box.person.uid
    for place in ("/deep/down/ro/c", "/etc/one"):
        found = box.run("bash", "-c", f"echo x > {place}", binds=both)
        assert "Read-only file system" in found["err"]


@pytest.mark.parametrize("writable", [False, True])
def test_a_bind_has_no_devices_and_no_setuid(box: Box, writable: bool) -> None:
    """Of what is mounted in the end: crun 1.8 passes over flags of a bind that is writable."""
    bind = [str(box.folder("bound")), "/given", writable]
    mounts = box.sh("cat /proc/self/mountinfo", binds=[bind])
    [line] = [line for line in mounts.splitlines() if line.split()[4] == "/given"]
    assert {"nodev", "nosuid", "rw" if writable else "ro"} <= {*line.split()[5].split(",")}


@pytest.mark.parametrize("copied", [False, True])
def test_what_is_mounted_in_a_bound_folder_is_there(box: Box, copied: bool) -> None:
    folder = box.folder("outer")
    inner = folder / "in ner"
    inner.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", inner], check=True)
    try:
        (inner / "file").touch()
        found = box.run("bash", "-c", "cd /given && ls *", binds=[[str(folder), "/given", True, copied]])
        # Linux lets an ordinary user put no overlay over a folder in which root has mounted something.
        assert found.get("out", "file\n" if copied and box.person.uid else "") == "file\n", found
    finally:
        subprocess.run(["umount", inner], check=True)


@pytest.mark.parametrize("writable", [False, True])
def test_a_bound_device_cannot_be_opened(box: Box, writable: bool) -> None:
    found = box.run("head", "-c1", "/given", binds=[["/dev/zero", "/given", writable]])
    assert "Permission denied" in found["err"]


def test_a_bind_of_what_is_not_there_is_the_host_s_fault(box: Box) -> None:
    found = box.run("bash", "-c", "true", binds=[(str(box.person.folder / "nowhere"), "/x", False)])
    assert found["error"] == "HostError"
    assert "nowhere" in found["message"]


def test_a_program_that_is_not_in_the_image_is_named(box: Box) -> None:
    found = box.run("python9")
    assert found["error"] == "HostError"
    assert found["message"].startswith("python9 could not be started in the image: ")


def running(mark: str) -> list[int]:
    """Return the processes of this machine that have a word on their command line."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if mark in path.read_bytes().decode().split("\0"):
                found.append(int(path.parent.name))
    return found


@pytest.fixture
def seconds() -> Iterator[str]:
    """A long time to sleep that marks the processes of one test; none of them outlives it."""
    mark = f"600.{uuid.uuid4().int % 10**9:09}"
    yield mark
    left = running(mark)
    for number in left:
        os.kill(number, signal.SIGKILL)
    assert not left


def test_the_time_limit_kills_all_that_it_has_started(box: Box, seconds: str) -> None:
    # In the background, deaf to signals, and holding the pipes open.
    script = f"trap '' TERM INT HUP; (trap '' TERM INT HUP; sleep {seconds}) & sleep {seconds}"
    command = box.command("bash", "-c", script, timeout=3)
    process = box.person.start(command, stdout=subprocess.PIPE)
    try:
        assert settles(lambda: len(running(seconds)) == 2, within=30)
        found = json.loads(process.communicate(timeout=30)[0])
        assert found["error"] == "ProcessTimeout"
        assert "did not end within 3 s" in found["message"]
        assert settles(lambda: not running(seconds), within=5)
    finally:
        process.kill()
        process.communicate()


BOMB = "bomb() { while :; do bomb & done; }; bomb"
EATER = "x=x; while :; do x=$x$x$x$x; done"


@pytest.mark.parametrize(
    ("script", "limits", "reason"),
    [
        (BOMB, {"REPROBUILD_PROCESSES": "300"}, "started more than 300 processes and threads"),
        (EATER, {"REPROBUILD_MEMORY": "200M"}, "took more than 200 MiB of memory"),
        (
            "head -c 1G /dev/zero >/tmp/full || while :; do x=$x$(cat /tmp/full); done",
            {"REPROBUILD_MEMORY": "200M"},
            "took more than 200 MiB of memory",
        ),
    ],
    ids=["forks", "memory", "files"],
)
def test_what_takes_the_machine_is_stopped(
    box: Box, script: str, limits: dict[str, str], reason: str
) -> None:
    if "/tmp/" in script and box.person.uid != 0:
        pytest.skip("without a control group nobody counts the files of a tmpfs")
    found = box.run("bash", "-c", script, limits=limits, timeout=50)
    if box.person.uid != 0 and "error" not in found:
        # The count of processes that Linux holds itself was reached before ours saw it.
        assert "fork: retry: Resource temporarily unavailable" in found["err"]
        return
    if box.runtime == "runc" and "error" not in found:
        # Its own group in ours goes with the program, and what it has counted too.
        assert found["status"] != 0
        return
    assert found["error"] == "LimitReached"
    assert reason in found["message"]
    assert settles(lambda: not control_groups_left(), within=5)


def test_within_the_limits_nothing_is_said(box: Box) -> None:
    script = "for n in 1 2 3 4 5 6 7 8; do sleep 0 & done; wait; x=$(printf %1000000s); echo ${#x}"
    limits = {"REPROBUILD_PROCESSES": "300", "REPROBUILD_MEMORY": "200M"}
    assert box.sh(script, limits=limits) == "1000000\n"
    assert not control_groups_left()


def control_groups_left() -> list[Path]:
    """Return the control groups of runs that have ended; what still runs, also elsewhere, holds its own."""
    return [left for place in places() for left in place.folder.glob("reprobuild-*") if not held(left)]


def test_what_is_left_in_the_background_ends_with_the_program(box: Box, seconds: str) -> None:
    assert box.sh(f"(sleep {seconds} >/dev/null 2>&1 &) ; echo gone") == "gone\n"
    assert settles(lambda: not running(seconds), within=5)


def test_on_a_terminal(box: Box) -> None:
    """With a terminal the program has it: it can ask who it is, is asked, and its status comes back."""
    ours, theirs = pty.openpty()
    script = "tty; test -t 0 && test -t 1 && test -t 2; echo on=$?; read -r line; echo got=$line; exit 7"
    os.fchown(theirs, box.person.uid, -1)
    with box.person.start(
        box.command("bash", "-c", script, terminal=True),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        os.write(ours, b"hello\n")
        said = b""
        with suppress(OSError):  # the terminal's other end is closed
            while b"got=" not in said and (data := os.read(ours, 1024)):
                said += data
        assert process.wait(timeout=30) == 7, said
    os.close(ours)
    text = said.decode()
    assert "/dev/pts/0" in text or "/dev/console" in text
    assert "on=0" in text
    assert "got=hello" in text


def test_without_namespaces_the_host_is_to_blame(box: Box) -> None:
    if box.person.uid == 0:
        # As in a container that was not given this capability.
        before = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]
    else:
        # One more user namespace is allowed, which takes us out of the outer one's root.
        inner = 'echo 1 > /proc/sys/user/max_user_namespaces && exec unshare --user --map-user=1000 -- "$@"'
        before = ["unshare", "--user", "--map-root-user", "sh", "-c", inner, "sh"]
    found = box.run("bash", "-c", "true", before=before)
    assert found["error"] == "HostError"
    assert found["message"].startswith("this machine does not let you make a mount namespace: unshare: ")
    assert "run as root" in found["hint"]


def test_a_user_without_subordinate_ids_is_told_so(people: Callable[[str], Person], tmp_path: Path) -> None:
    """Whose program asks for another user than root; it was unshare's own word, without a remedy."""
    if os.geteuid() != 0:
        pytest.skip("only root can be nobody")
    nobody = replace(people("user"), uid=65534, gid=65534)
    code = "from pathlib import Path\nfrom reprobuild.host import sandbox\n"
    code += "task = sandbox.Task(argv=['x'], env={}, all_ids=True, user=(1000, 0))\n"
    code += "try: sandbox.check_started(Path('/none'), task)\n"
    code += "except sandbox.HostError as error: print(error.message, error.hint, sep='|')"
    with nobody.start(nobody.python("-c", code), stdout=subprocess.PIPE) as process:
        out, _ = process.communicate(timeout=60)
    assert out.startswith(b"your user has no range of subordinate ids: ")
    assert b"usermod --add-subuids" in out
