"""What a Debian package's script, run as root, can reach: nothing of the host but its programs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conftest import needs
from reprobuild.host.limits import LARGEST_FILE

if TYPE_CHECKING:
    from support.people import Person  # pytest itself imports the plugin

pytest_plugins = ["support.people"]
pytestmark = pytest.mark.core

_DRIVER = """
import json, sys
from pathlib import Path
from reprobuild.host import minimal_root, process
env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
try:
    done = minimal_root.run(Path(sys.argv[1]), sys.argv[2:], env=env, timeout=60)
    print(json.dumps({"out": done.stdout.decode(), "err": done.stderr.decode()}))
except process.ProcessFailed as failed:
    print(json.dumps({"failed": failed.tail}))
except process.LimitReached as reached:
    print(json.dumps({"failed": reached.reason}))
except process.ProcessTimeout:
    print(json.dumps({"failed": "timeout"}))
"""


@pytest.fixture(scope="module", params=["root", "user"])
def person(request: pytest.FixtureRequest, people: Callable[[str], Person]) -> Person:
    for program in ("unshare", "setpriv", "newuidmap", "pivot_root"):
        needs(program)
    return people(request.param)


def run(person: Person, script: str, *, name: str = "build", **limits: str) -> dict[str, Any]:
    made = f"mkdir -p '{name}'; chmod 700 ."
    with person.start(["sh", "-c", made]) as process:
        assert process.wait(timeout=30) == 0
    command = person.python("-c", _DRIVER, person.folder / name, "sh", "-c", script)
    with person.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=limits) as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err.decode()
    found: dict[str, Any] = json.loads(out)
    return found


def test_it_does_not_wait_for_the_disk(person: Person) -> None:
    needs("perl")
    number = {"x86_64": 74, "aarch64": 82}.get(os.uname().machine)
    if number is None:
        pytest.skip("the calls of this machine are not known")
    # fsync(2) of no file, which fails unless a filter answers.
    assert run(person, f"perl -e 'print syscall({number}, -1)'", name="sync")["out"] == "0"


def test_no_file_of_the_host_is_there(person: Person) -> None:
    secret = person.folder / "secret"
    secret.write_text("the host's own")
    script = f"""
    for at in '' /proc/1/root /proc/self/root /proc/1/cwd/..; do cat "$at{secret}" 2>/dev/null; done
    ls -A / /root /home /var /run 2>/dev/null; cat /etc/shadow 2>/dev/null; true
    """
    said = run(person, script)["out"]
    assert "the host's own" not in said
    assert "root:" not in said
    assert {"dev", "etc", "proc", "sys", "tmp", "usr", "build"} <= {*said.split()}
    assert not {"root", "home", "mnt", "srv", "boot"} & {*said.split()}


def test_root_there_is_nobody_outside(person: Person) -> None:
    """Neither its number nor its rights count."""
    said = run(person, "id -u; cat /proc/self/uid_map; : >/build/made; chmod 4755 /build/made")["out"].split()
    assert said[0] == "0"
    assert int(said[2]) != 0
    made = (person.folder / "build/made").stat()
    assert made.st_uid == int(said[2])
    for attack in (
        "echo x >/proc/sys/kernel/core_pattern",
        "echo x >/proc/sysrq-trigger",
        "mknod /build/disk b 8 0",
        "mount -t devtmpfs devtmpfs /tmp",
        "mount -o remount,rw /usr && : >/usr/bin/reprobuild-test",
        ": >/usr/bin/reprobuild-test",
        "kill -0 2",
    ):
        assert "failed" in run(person, attack), attack
    assert not Path("/usr/bin/reprobuild-test").exists()


def test_it_has_no_network(person: Person) -> None:
    said = run(person, "cat /proc/net/dev")["out"]
    assert [line.split(":")[0].strip() for line in said.splitlines()[2:] if "lo:" in line] == ["lo"]
    assert "eth" not in said


@pytest.mark.parametrize("name", ["a b", "50%", "[x]", "#1", "new\nline", "é\\x"])
def test_its_folder_may_have_any_name(person: Person, name: str) -> None:
    assert run(person, "pwd; echo x >made; cat /build/made", name=name)["out"].split() == ["/build", "x"]


@pytest.mark.parametrize(
    ("script", "limits", "reason"),
    [
        (
            "bomb() { while :; do bomb & done; }; bomb",
            {"REPROBUILD_PROCESSES": "300"},
            "more than 300 processes",
        ),
        (
            "exec perl -e 'my @x; push @x, \"x\" x 10000000 while 1'",
            {"REPROBUILD_MEMORY": "300M"},
            "more than 300 MiB of memory",
        ),
    ],
    ids=["forks", "memory"],
)
def test_it_cannot_take_the_machine(person: Person, script: str, limits: dict[str, str], reason: str) -> None:
    found = run(person, script, **limits)
    # Linux itself may refuse an ordinary user's next process before ours are counted.
    refused = person.uid != 0 and "processes" in reason and "Cannot fork" in found["failed"]
    assert refused or reason in found["failed"], found


def test_a_file_without_end_is_cut(person: Person) -> None:
    said = run(person, "ulimit -f; ulimit -c")["out"].split()
    assert said == [str(LARGEST_FILE // 512), "0"]
