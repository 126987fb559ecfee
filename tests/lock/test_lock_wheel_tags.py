"""The wheels of a lock by their tags; pip's own, of this machine, are the oracle."""

from __future__ import annotations

import platform
import sys
from dataclasses import replace

import pytest
from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

from reprobuild.lock.model import Lock
from reprobuild.lock.wheel_tags import MACHINES, glibc_of, tags_of, wheel_tags
from reprobuild.resolve.target import glibc_here
from support.resolving import debian
from support.wheels import toy_lock

LOCK = toy_lock([])


def _fits(filename: str, lock: Lock) -> bool:
    return not tags_of(lock).keys().isdisjoint(parse_wheel_filename(filename)[3])


@pytest.mark.parametrize(
    ("tags", "good"),
    [
        ("py3-none-any", True),
        ("py2.py3-none-any", True),
        ("py39-none-any", True),
        ("py312-none-any", False),
        ("py2-none-any", False),
        ("cp311-cp311-manylinux_2_28_x86_64", True),
        ("cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.manylinux_2_28_x86_64", True),
        ("cp39-abi3-manylinux1_x86_64", True),
        ("cp312-abi3-manylinux1_x86_64", False),
        ("cp311-cp311-linux_x86_64", True),
        ("cp310-cp310-linux_x86_64", False),
        ("cp313-cp313t-linux_x86_64", False),
        ("py3-none-manylinux_2_17_aarch64", False),
        ("py3-none-musllinux_1_2_x86_64", False),
        ("py3-none-win_amd64", False),
        ("py3-none-win_amd64.manylinux_2_5_x86_64", True),
        ("cp39-cp39-win_amd64", False),
        ("pp311-pypy311_pp73-linux_x86_64", False),
    ],
)
def test_a_wheel_is_for_the_lock_s_python_and_machine(tags: str, good: bool) -> None:
    assert _fits(f"x-1-{tags}.whl", LOCK) is good


@pytest.mark.parametrize(
    ("version", "good"), [("2.36-9+deb12u10", True), ("1:2.28-1", True), ("2.27-3", False), ("odd", True)]
)
def test_a_locked_c_library_is_new_enough(version: str, good: bool) -> None:
    lock = replace(LOCK, debian=[debian("libc6", version)])
    assert _fits("x-1-cp311-cp311-manylinux_2_28_x86_64.whl", lock) is good
    assert _fits("x-1-py3-none-manylinux2014_x86_64.whl", lock)


def test_the_tags_are_those_of_an_installer_on_this_machine() -> None:
    python = f"3.{sys.version_info.minor}"
    architecture = {machine: name for name, machine in MACHINES.items()}[platform.machine()]
    assert wheel_tags(python, architecture, glibc_here()).keys() == {*sys_tags()}


def test_glibc_of() -> None:
    assert glibc_of([debian("bash", "5.2"), debian("libc6", "2.41-12+deb13u4")]) == (2, 41)
