"""Capabilities, devices, namespaces and hidden files of a confined program."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from reprobuild.host.confinement import MASKED
from support.boxes import Box

pytest_plugins = ["support.people", "support.boxes"]


@pytest.fixture(autouse=True)
def _nothing_is_left(box: Box) -> Iterator[None]:
    yield
    assert box.leftovers() == []


def test_no_capability_and_none_to_be_had(box: Box) -> None:
    status = dict(
        line.split(":\t", 1) for line in box.sh("cat /proc/self/status").splitlines() if ":\t" in line
    )
    held = {key: int(status[key], 16) for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
    assert held == dict.fromkeys(held, 0)
    assert status["NoNewPrivs"] == "1"
    found = box.run("mount", "-t", "tmpfs", "tmpfs", "/home")
    assert found["status"] != 0
    assert "permission denied" in found["err"].lower()


@pytest.mark.parametrize("writable", [True, False])
def test_a_device_node_in_a_layer_leads_nowhere(box: Box, writable: bool) -> None:
    """As one of a disk did, with which an image read and wrote the host's files."""
    layer = box.folder("nodes")
    os.mknod(layer / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    found = box.run("bash", "-c", "exec 3< /zero", layers=[str(layer)], writable=writable)
    assert found["status"] != 0
    assert "/zero: Permission denied" in found["err"]
    if box.person.uid == 0:  # an ordinary user's mounts open no device whatever their flags
        (line,) = [line for line in box.sh("cat /proc/self/mountinfo").splitlines() if " / / " in line]
        assert {"nodev", "nosuid"} <= {*line.split()[5].split(",")}


def test_what_tells_of_the_host_is_hidden(box: Box) -> None:
    look = 'for p in "$@"; do if [ -d $p ]; then ls -A $p; elif [ -e $p ]; then cat $p; fi; done'
    assert {"/proc/kcore", "/proc/keys", "/proc/acpi", "/sys/firmware"} <= set(MASKED)
    assert box.run("bash", "-c", look, "bash", *MASKED)["out"] == ""


@pytest.mark.parametrize("kind", ["--user", "--mount", "--net", "--pid"])
def test_no_namespace_can_be_made(box: Box, kind: str) -> None:
    found = box.run("unshare", kind, "true", capabilities=["SYS_CHROOT"])
    assert found["status"] != 0
    assert "unshare failed: Operation not permitted" in found["err"]


def test_its_users_are_not_those_of_the_host(box: Box) -> None:
    """With every number as it is, so that files keep their owners."""
    assert box.sh("ls -l /proc/self/ns/user").split()[-1] != str(Path("/proc/self/ns/user").readlink())
    if box.person.uid == 0:
        assert box.sh("cat /proc/self/uid_map").split() == Path("/proc/self/uid_map").read_text().split()


def test_without_a_user_namespace_the_rest_still_holds(box: Box) -> None:
    said = box.sh("cat /proc/self/status", hooks={"poststop": [{"path": "/usr/bin/true"}]})
    assert "Seccomp:\t2" in said
    assert "CapEff:\t0000000000000000" in said


def test_the_boot_and_the_kernel_s_command_line_are_hidden(box: Box) -> None:
    assert box.sh("cat /proc/cmdline /proc/sys/kernel/random/boot_id") == ""
    assert box.sh("ls -A /sys/devices/virtual/dmi 2>/dev/null || true") == ""  # a machine may have none


def test_a_device_is_handed_in(box: Box) -> None:
    script = "ls /dev/nvidia0 && bash -c 'read -r -N 3 x < /dev/given; echo ${#x}' 2>/dev/null"
    devices = [("/dev/nvidia0", "/dev/null"), ("/dev/given", "/dev/urandom")]
    said = box.sh(script, devices=devices).split()
    assert said[0] == "/dev/nvidia0"
    assert int(said[1]) > 0
    found = box.run("bash", "-c", "cat /dev/given")
    assert found["status"] != 0
