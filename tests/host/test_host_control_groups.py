"""Where control groups can be made, and their limits."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from reprobuild.errors import HostError
from reprobuild.host import control_groups, limits
from reprobuild.host.control_groups import GroupFolder, places


def tree(tmp_path: Path, mounts: str, own: str) -> list[GroupFolder]:
    (tmp_path / "mountinfo").write_text(mounts.replace("TOP", str(tmp_path)))
    (tmp_path / "cgroup").write_text(own)
    return list(places(tmp_path / "mountinfo", tmp_path / "cgroup"))


def test_groups_of_version_2_are_made_where_one_above_has_the_controllers(tmp_path: Path) -> None:
    """As under systemd: a group with processes can have none below it, so the run's group goes beside it."""
    own = tmp_path / "cg/user.slice/session-1.scope"
    own.mkdir(parents=True)
    for folder, enabled in ((own, ""), (own.parent, "memory pids"), (tmp_path / "cg", "cpu memory pids")):
        (folder / "cgroup.subtree_control").write_text(enabled + "\n")
        (folder / "cgroup.procs").touch()
    line = "30 20 0:26 / TOP/cg rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
    found = tree(tmp_path, line, "0::/user.slice/session-1.scope\n")
    assert found == [GroupFolder(own.parent, ("memory", "pids"), 2)]
    # A container sees its own group as the root, which has processes and no group above.
    line = (
        "30 20 0:26 /user.slice/session-1.scope TOP/cg/user.slice/session-1.scope ro - cgroup2 cgroup2 rw\n"
    )
    assert tree(tmp_path, line, "0::/user.slice/session-1.scope\n") == []
    assert tree(tmp_path, line, "0::/../elsewhere\n") == []


def test_groups_of_version_1_are_made_below_the_own_one(tmp_path: Path) -> None:
    for path in ("memory/job", "pids"):
        (tmp_path / path).mkdir(parents=True)
    mounts = (
        "1 0 0:1 / TOP/memory rw - cgroup cgroup rw,memory\n"
        "2 0 0:2 / TOP/pids rw - cgroup cgroup rw,pids\n"
        "3 0 0:3 / TOP/unified rw - cgroup2 cgroup2 rw\n"
    )
    found = tree(tmp_path, mounts, "8:pids:/\n4:memory:/job\n0::/\n")
    assert found == [
        GroupFolder(tmp_path / "memory/job", ("memory",), 1),
        GroupFolder(tmp_path / "pids", ("pids",), 1),
    ]


def test_without_any_the_memory_of_a_run_is_not_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_groups, "places", lambda: iter(()))
    with (
        pytest.raises(HostError, match="the memory of a run cannot be limited here"),
        limits.guarded(limits.Limits(memory=1 << 30), by_the_kernel=True),
    ):
        pass


def test_groups_made_at_once_all_hold_their_limits() -> None:
    """No run's sweep takes away what another has just made, and none fails."""
    if {controller for place in places() for controller in place.controllers} != {"memory", "pids"}:
        pytest.skip("no control groups can be made here")
    code = """
from reprobuild.host.control_groups import made
for _ in range(40):
    with made({"memory": 1 << 30, "pids": 1000}) as groups:
        assert {*groups.bounded} == {"memory", "pids"}
"""
    all_ = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) for _ in range(6)]
    assert [(each.communicate()[1], each.returncode) for each in all_] == [(b"", 0)] * 6


def test_a_limit_that_cannot_be_set_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = GroupFolder(tmp_path / "gone", ("memory",), 1)
    monkeypatch.setattr(control_groups, "places", lambda: [place])
    with (
        pytest.raises(HostError, match="the limits of a run cannot be set: No such file"),
        control_groups.made({"memory": 1 << 30}),
    ):
        pass

    def refused(**_: object) -> str:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(tempfile, "mkdtemp", refused)
    with control_groups.made({"memory": 1 << 30}) as groups:
        assert not groups.bounded


def test_of_processes_the_tightest_group_is_named() -> None:
    """The kernel counts a refused process in the group that wanted it, also where one above refused.

    First the watching thread starts, which is in the group, too.
    """
    if not any("pids" in place.controllers for place in places()):
        pytest.skip("no control groups can be made here")
    code = """
from reprobuild.host import control_groups, limits
from reprobuild.host.process import LimitReached, run
with control_groups.made({"pids": 20}) as groups:
    (groups.folders[0] / "run" / "cgroup.procs").write_text("0")
    with limits.guarded(limits.Limits(processes=1000)) as guard:
        try:
            run(["sh", "-c", "sleep 0.3; for n in $(seq 30); do sleep 9 & done; wait"], guard=guard)
        except LimitReached as reached:
            print(reached.reason)
    (groups.folders[0].parent / "cgroup.procs").write_text("0")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "its control group allows only 20 processes and threads (pids.max)\n", done.stderr
