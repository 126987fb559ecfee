"""What torch.compile lacks in an image, which is found out without torch."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest

from reprobuild.in_image.selftest.compilation import toolchain_missing

DEV = f"python3.{sys.version_info.minor}-dev"


@pytest.mark.parametrize(
    ("prefix", "compiler", "headers", "words"),
    [
        ("/usr", True, True, ""),
        ("/usr", False, True, 'needs a C++ compiler: add apt = ["g++"]'),
        ("/usr", True, False, f'needs Python\'s headers: add apt = ["{DEV}"]'),
        ("/usr", False, False, f'a C++ compiler and Python\'s headers: add apt = ["g++", "{DEV}"]'),
        ("/opt/python", False, True, 'add apt = ["g++"]'),
        # Of no package of Debian's: it came without.
        ("/opt/python", True, False, "needs Python's headers, which the Python in /opt/python lacks"),
    ],
)
def test_what_is_missing_is_named_with_its_package(
    prefix: str, compiler: bool, headers: bool, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    if compiler:
        (tmp_path / "bin/g++").write_text("")
        (tmp_path / "bin/g++").chmod(0o755)
    if headers:
        (tmp_path / "Python.h").touch()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(sys, "base_prefix", prefix)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    found = toolchain_missing("cpu")
    assert words in found if words else found == ""
