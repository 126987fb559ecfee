"""A program that need not wait for the disk does not, and is otherwise the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reprobuild.programs import no_sync

PROGRAM = str(Path(no_sync.__file__))
KNOWN = os.uname().machine in ("x86_64", "aarch64")

# A filter answers before the kernel looks whether the file is open.
_SYNC_WITHOUT_A_FILE = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
print(*(getattr(libc, name)(-1) for name in ("fsync", "fdatasync", "syncfs")), libc.close(-1))
"""


def started(*argv: str) -> list[str]:
    """Run a program by this one, with the right to set a filter; return the words that it prints."""
    root = [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user"]
    command = [*root, sys.executable, "-I", "-S", PROGRAM, *argv]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.skipif(not KNOWN, reason="the calls of this machine are not known")
def test_nothing_is_waited_for_and_all_else_is_as_ever() -> None:
    assert started(sys.executable, "-c", _SYNC_WITHOUT_A_FILE) == ["0", "0", "0", "-1"]


@pytest.mark.skipif(not KNOWN, reason="the calls of this machine are not known")
def test_what_it_starts_does_not_wait_either() -> None:
    assert started("sh", "-c", f"{sys.executable} -c '{_SYNC_WITHOUT_A_FILE}'; true")[0] == "0"


def test_without_the_right_to_it_the_program_runs_all_the_same() -> None:
    drop = [] if os.geteuid() else ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    command = [*drop, sys.executable, "-I", "-S", PROGRAM, sys.executable, "-c", _SYNC_WITHOUT_A_FILE]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["-1", "-1", "-1", "-1"]


def test_the_exit_status_is_that_of_the_program() -> None:
    assert subprocess.run([sys.executable, PROGRAM, "sh", "-c", "exit 7"], check=False).returncode == 7


@pytest.mark.parametrize(("machine", "steps"), [("x86_64", 10), ("aarch64", 10)])
def test_a_filter_is_a_jump_for_each_call(machine: str, steps: int) -> None:
    found = no_sync.program(machine)
    assert found is not None
    assert len(found) == 8 * steps


def test_of_another_machine_nothing_is_known() -> None:
    assert no_sync.program("riscv64") is None
