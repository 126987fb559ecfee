"""The first process of a container, here started as any other."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from reprobuild import assets

COMMAND = [sys.executable, "-I", "-S", "-c", assets.in_image("init.py").decode()]


def start(*argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen([*COMMAND, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ("argv", "status", "said"),
    [
        (["sh", "-c", "echo out; exit 3"], 3, ""),
        (["sh", "-c", "kill -KILL $$"], 137, ""),
        (["no-such-program"], 127, "reprobuild: no-such-program: No such file or directory\n"),
        (["/"], 126, "reprobuild: /: Permission denied\n"),
    ],
)
def test_the_status_is_the_command_s(argv: list[str], status: int, said: str) -> None:
    with start(*argv) as process:
        assert process.communicate(timeout=30)[1] == said
    assert process.returncode == status


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_are_passed_on_and_are_as_they_were(number: signal.Signals) -> None:
    """Python itself ignores SIGPIPE, and catches SIGINT; the command must not start like that."""
    with start("sh", "-c", "cat /proc/self/status; echo end; exec sleep 60") as process:
        assert process.stdout is not None
        lines = [line.split() for line in iter(process.stdout.readline, "end\n")]
        masks = {line[0]: int(line[1], 16) for line in lines if line[0][:3] == "Sig" and line[0] != "SigQ:"}
        assert {*masks.values()} == {0}, masks
        process.send_signal(number)
        process.communicate(timeout=30)
    assert process.returncode == 128 + number


def test_children_that_are_left_over_do_not_end_it() -> None:
    with start("sh", "-c", "(sleep 0.05 &) ; sleep 0.2; exit 4") as process:
        process.communicate(timeout=30)
    assert process.returncode == 4


def test_the_command_has_the_terminal() -> None:
    """Ctrl-Z does not stop it for good, since nobody could let it go on; Ctrl-C ends it."""
    child, terminal = pty.fork()
    if child == 0:
        os.execv(COMMAND[0], [*COMMAND, "sh", "-c", "echo ready; exec sleep 60"])
    said = b""
    while b"ready" not in said:
        said += os.read(terminal, 1024)
    os.write(terminal, b"\x1a\x03")
    with suppress(OSError):  # its other end is closed
        while os.read(terminal, 1024):
            pass
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 130
    os.close(terminal)
