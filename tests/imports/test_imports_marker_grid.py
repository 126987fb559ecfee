"""Lists of requirements that are the same everywhere, and those that part on one system or Python."""

from __future__ import annotations

import pytest
from packaging.markers import Marker
from packaging.specifiers import SpecifierSet

from reprobuild.imports.marker_grid import (
    MOST,
    AskedPackage,
    MarkedLine,
    are_same,
    beside,
    bounds,
    environments,
    python_marker,
)


def line(marker: str = "", versions: str = "", extra: str | None = None) -> MarkedLine:
    asked = AskedPackage("a", frozenset(), SpecifierSet(versions))
    return MarkedLine(asked, (Marker(marker),) if marker else (), (), extra)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("python_version >= '3.12'", "python_full_version >= '3.12'"),
        ("'3.12' <= python_version", "python_full_version >= '3.12'"),
        ("platform_system == 'Linux'", "sys_platform == 'linux'"),
        ("platform_python_implementation == 'CPython'", "implementation_name == 'cpython'"),
        ("sys_platform in 'linux darwin'", "sys_platform == 'linux' or sys_platform == 'darwin'"),
        ("python_version < '3.9' or python_version >= '3.12'", "python_full_version >= '3.12'"),
        ("python_version >= '3.11'", ""),
    ],
)
def test_the_same_in_other_words(one: str, two: str) -> None:
    assert are_same([line(one)], [line(two)], SpecifierSet(">=3.11"))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("", "sys_platform != 'win32'"),
        ("", "sys_platform != 'haiku'"),
        ("", "platform_machine != 'aarch64'"),
        ("", "implementation_name == 'cpython'"),
        ("", "platform_release != '7'"),
        ("python_version >= '3.12'", "python_full_version >= '3.12.1'"),
        ("python_version < '3.20'", "python_version <= '3.20'"),
        ("python_version < '3.9'", "python_version < '3.8'"),
    ],
)
def test_what_parts_somewhere(one: str, two: str) -> None:
    assert not are_same([line(one)], [line(two)], SpecifierSet(">=3.11"))


def test_versions_and_extras_count() -> None:
    every = SpecifierSet()
    assert are_same([line("", ">=1")], [line("", ">=1.0")], every)
    assert not are_same([line("", ">=1")], [line("", ">1")], every)
    assert are_same([line(extra="x")], [line("extra == 'x'")], every)
    assert not are_same([line(extra="x")], [line("extra == 'y'")], every)
    both = line("python_version >= '3.13' and extra == 'x'")
    assert are_same([line("python_version >= '3.13'", extra="x")], [both], every)
    assert not are_same([line("python_version >= '3.13'", extra="y")], [both], every)
    unless = line()._replace(unless=(Marker("sys_platform == 'linux'"),))
    assert are_same([unless], [line("sys_platform != 'linux'")], every)


def test_what_cannot_be_tried_is_not_the_same() -> None:
    many = " or ".join(f"platform_{name} == '{n}'" for name in ("release", "machine") for n in range(200))
    with pytest.raises(LookupError):
        [*environments([Marker(many)])]
    assert not are_same([line(many)], [line(f"{many} or platform_release == '7'")], SpecifierSet())
    assert MOST < 200 * 200


def test_the_pythons_of_specifiers() -> None:
    assert {"3.11.99", "3.12.0", "3.12.1", "3.13.0", "4.0.0"} <= {*beside(["3.12"])}
    old, new = SpecifierSet(">=3.11"), SpecifierSet(">=3.11,<4")
    assert bounds([old], new) != bounds([new], old)
    assert bounds([SpecifierSet("~=3.11")], new) == bounds([new], SpecifierSet("~=3.11"))
    assert bounds([SpecifierSet(">=3.11.0,!=3.12.1")], old) == bounds(
        [old], SpecifierSet(">=3.11.0,!=3.12.1")
    )
    assert bounds([old, SpecifierSet("<4")], new) == bounds([new], old, SpecifierSet("<4"))
    assert python_marker(SpecifierSet()) is None
    assert str(python_marker(new)) == 'python_full_version < "4" and python_full_version >= "3.11"'
