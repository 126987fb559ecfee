"""The shared libraries that a program or package asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.in_image.selftest import linkage
from support.elf import elf

pytest_plugins = ["support.site"]


@pytest.mark.parametrize("content", [b"", b"\x7fELF", elf(["a.so"])[:90], b"\x7fELF\x02\x01" + b"\xff" * 200])
def test_files_that_are_no_shared_objects(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.so").write_bytes(content)
    assert linkage.shared_object(str(tmp_path / "a.so")) is None


def test_what_a_real_program_needs() -> None:
    """The header as a linker writes it."""
    found = linkage.shared_object("/bin/sh")
    assert found is not None
    assert "libc.so.6" in found.needed


@pytest.mark.parametrize(
    ("library", "package"),
    [
        ("libxcb.so.1", "libxcb1"),
        ("libGL.so.1", "libgl1"),
        ("libX11.so.6", "libx11-6"),
        ("libgthread-2.0.so.0", "libglib2.0-0"),
        ("libSM.so.6", "libsm6"),
        ("libsndfile.so.1", "libsndfile1"),
        ("libXrender.so.1", "libxrender1"),
        ("libGLU.so.1", "libglu1-mesa"),
        ("libavcodec.so.59", "libavcodec59"),
        ("libdb-5.3.so", "libdb-5.3"),
    ],
)
def test_the_debian_package_of_a_library(library: str, package: str) -> None:
    assert linkage.debian_package(library) == package


@pytest.mark.parametrize(
    "content",
    [
        elf(["libnone.so.1"], text=6),  # no strings
        elf(["libnone.so.1"])[:176],  # the section is not in the file, as in one with debug information
        elf(["libnone.so.1"])[:32] + b"\xff" * 8 + elf(["libnone.so.1"])[40:],  # an offset beyond any file
        elf(["libnone.so.1"])[:20],
        b"",
    ],
)
def test_a_file_that_is_no_shared_object_says_nothing(site: Path, content: bytes) -> None:
    (site / "odd.so").write_bytes(content)
    assert linkage.shared_object(str(site / "odd.so")) is None
    assert linkage.installed_objects() == ()
