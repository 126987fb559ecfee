from __future__ import annotations

import ctypes
import os

import pytest

from reprobuild.resolve.target import TargetPython, glibc_here


def wheels(*tags: str) -> list[str]:
    return [f"a-1.0-{tag}.whl" for tag in tags]


@pytest.mark.parametrize(
    ("tags", "best"),
    [
        (["py3-none-any", "cp311-cp311-manylinux_2_28_x86_64"], "cp311-cp311-manylinux_2_28_x86_64"),
        (["cp39-abi3-manylinux_2_28_x86_64", "py3-none-any"], "cp39-abi3-manylinux_2_28_x86_64"),
        (["cp311-cp311-manylinux1_x86_64"], "cp311-cp311-manylinux1_x86_64"),
        (["cp311-cp311-linux_x86_64"], "cp311-cp311-linux_x86_64"),
        (["cp311-cp311-manylinux_2_37_x86_64", "py3-none-any"], "py3-none-any"),
        (["2-py3-none-any", "10-py3-none-any", "py3-none-any"], "10-py3-none-any"),
        (["cp311-cp311-musllinux_1_2_x86_64"], None),
        (["cp311-cp311-manylinux_2_17_aarch64"], None),
        (["cp312-abi3-manylinux_2_17_x86_64"], None),
    ],
)
def test_best(tags: list[str], best: str | None) -> None:
    expected = None if best is None else wheels(best)[0]
    target = TargetPython("3.11", "amd64", (2, 36))
    assert target.best(wheels(*tags)) == expected
    assert target.best(wheels(*reversed(tags))) == expected


def test_names_that_are_no_wheels_are_passed_over() -> None:
    assert TargetPython("3.11", "amd64", (2, 36)).best(["a-1.0.tar.gz", "rubbish.whl"]) is None


@pytest.mark.parametrize(
    ("architecture", "glibc", "platform"),
    [
        ("amd64", (2, 36), "x86_64-manylinux_2_36"),
        ("amd64", (2, 30), "x86_64-manylinux_2_28"),
        ("arm64", (2, 99), "aarch64-manylinux_2_40"),
        ("amd64", (2, 5), "x86_64-manylinux_2_17"),
    ],
)
def test_uv_platform(architecture: str, glibc: tuple[int, int], platform: str) -> None:
    assert TargetPython("3.11", architecture, glibc).uv_platform == platform


def test_the_c_library_here_is_that_of_this_interpreter() -> None:
    library = ctypes.CDLL(None)
    library.gnu_get_libc_version.restype = ctypes.c_char_p
    major, minor = library.gnu_get_libc_version().decode().split(".")[:2]
    assert glibc_here() == (int(major), int(minor))


@pytest.mark.parametrize("answer", ["", "musl 1.2", None])
def test_another_c_library_counts_as_the_oldest(answer: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "confstr", lambda _: answer)
    assert glibc_here() == (2, 17)
