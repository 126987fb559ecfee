"""How limits are said, and where control groups can be made; test_host_sandbox.py and _apart.py hold them."""

from __future__ import annotations

import os

import pytest

from reprobuild.errors import HostError
from reprobuild.host import control_groups, limits


@pytest.mark.parametrize(
    ("text", "expected"),
    [("8G", 8 << 30), ("512MiB", 512 << 20), ("4096k", 4 << 20), ("1tb", 1 << 40), ("1000", 1000)],
)
def test_an_amount_of_memory(text: str, expected: int) -> None:
    assert limits.size(text, "--memory") == expected


@pytest.mark.parametrize("text", ["", "0", "-1", "8X", "1e9", "8 G B", "٣", "9" * 40])
def test_no_amount_of_memory(text: str) -> None:
    with pytest.raises(HostError, match=r"--memory: .* is not an amount of memory"):
        limits.size(text, "--memory")


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5", "9" * 40])
def test_no_number_of_processes(text: str) -> None:
    with pytest.raises(HostError, match=r"REPROBUILD_PROCESSES: .* is not a number of processes"):
        limits.of_steps({"REPROBUILD_PROCESSES": text})


def test_a_step_leaves_the_machine_something() -> None:
    found = limits.of_steps({})
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert found.memory is not None
    assert 0 < found.memory <= min(limits.MOST_MEMORY, machine * 3 // 4)
    assert found.processes is not None
    assert 0 < found.processes <= limits.MOST_PROCESSES
    raised = limits.of_steps({"REPROBUILD_MEMORY": "2T", "REPROBUILD_PROCESSES": "99999"})
    assert (raised.memory, raised.processes) == (2 << 40, 99999)


@pytest.mark.parametrize(
    ("own", "env", "text", "hint"),
    [
        (300 << 20, {}, "this process may take 300 MiB of memory", "docker run --memory"),
        (959 << 20, {"REPROBUILD_MEMORY": "4G"}, "this process may take 959 MiB of memory", "docker run"),
        (2 << 30, {"REPROBUILD_MEMORY": "600M"}, "a step of a build may take 600 MiB", "REPROBUILD_MEMORY"),
    ],
)
def test_memory_with_which_a_self_test_would_only_wait_for_the_disk_is_refused(
    own: int, env: dict[str, str], text: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_groups, "own_limit", lambda _: own)
    with pytest.raises(HostError, match=text) as caught:
        limits.refuse_too_little(env)
    assert hint in caught.value.hint


def test_one_gibibyte_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_groups, "own_limit", lambda _: limits.LEAST_MEMORY)
    limits.refuse_too_little({})
    limits.refuse_too_little({"REPROBUILD_MEMORY": "720M"})
