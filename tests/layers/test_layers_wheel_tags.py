"""What pip would refuse by its name is refused here too."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from reprobuild.errors import BuildError
from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.layers.package_files import check_wheels
from reprobuild.layers.wheel_tags import fits
from reprobuild.lock.packages import DebianPackage
from reprobuild.resolve.target import TargetPython
from support.fixtures import fixtures_of
from support.wheels import put, simple_wheel, toy_lock, toy_pip

globals().update(fixtures_of("support.built_layers"))

LOCK = toy_lock([])


def libc(version: str) -> DebianPackage:
    return DebianPackage(
        name="libc6", version=version, architecture="amd64", archive="debian", path="pool/a.deb", size=1,
        sha256="0" * 64,
    )  # fmt: skip


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
    assert fits(f"x-1-{tags}.whl", LOCK) is good


@pytest.mark.parametrize(
    ("version", "good"), [("2.36-9+deb12u10", True), ("1:2.28-1", True), ("2.27-3", False), ("odd", True)]
)
def test_a_locked_c_library_is_new_enough(version: str, good: bool) -> None:
    lock = replace(LOCK, debian=[libc(version)])
    assert fits("x-1-cp311-cp311-manylinux_2_28_x86_64.whl", lock) is good
    assert fits("x-1-py3-none-manylinux2014_x86_64.whl", lock)


def test_what_the_resolver_chooses_fits_and_nothing_else() -> None:
    target, lock = TargetPython("3.11", "amd64", (2, 36)), replace(LOCK, debian=[libc("2.36-9")])
    pythons = ("cp39", "cp311", "cp312", "py3", "py27", "py311", "py312", "py2.py3", "pp311", "cp3")
    abis = ("none", "abi3", "cp311", "cp39", "cp311d", "cp313t")
    systems = ("any", "linux_x86_64", "linux_aarch64", "manylinux1_x86_64", "manylinux2014_x86_64")
    more = ("manylinux_2_36_x86_64", "manylinux_2_37_x86_64", "manylinux_2_17_aarch64", "win_amd64")
    for tag in itertools.product(pythons, abis, (*systems, *more)):
        name = f"x-1-{'-'.join(tag)}.whl"
        assert fits(name, lock) is (target.best([name]) is not None), name


def test_a_wheel_for_another_system_is_refused_before_it_is_read(home: Home) -> None:
    """Docker and Podman run pip, which refuses it; the embedded engine named an image."""
    there = put(home, "alpha", simple_wheel("alpha"))
    other = replace(there.wheel, filename="alpha-1.0-cp39-cp39-win_amd64.whl")
    lock = toy_lock([put(home, "pip", toy_pip()), replace(there, wheel=other)])
    with pytest.raises(BuildError, match=r"alpha: the wheel alpha.* is not for Python 3\.11 on linux/amd64"):
        check_wheels(lock, Store(home))
