"""Source archives: how they want to be built, and those that nothing unpacks."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from reprobuild.errors import BuildError
from reprobuild.sources import source_archive
from reprobuild.sources.source_archive import BuildSystem, build_system
from support.sdists import sdist, tar_gz
from support.tars import long_header


def member(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file"


def read(file: Path, body: bytes, name: str = "a-1.tar.gz") -> BuildSystem:
    file.write_bytes(body)
    return build_system(file, name)


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_a_header_of_any_length_is_not_read_into_memory(
    file: Path, compress: Callable[[bytes], bytes]
) -> None:
    with pytest.raises(BuildError, match=r"a header has 1,073,741,824 bytes"):
        read(file, compress(long_header()))


def test_what_an_archive_asks_for(file: Path) -> None:
    found = read(file, sdist("a", "1"))
    assert found == BuildSystem(requires=(), backend="backend", backend_path=(".",))
    assert read(file, tar_gz({"a-1/setup.py": b""})) == BuildSystem()
    assert read(file, tar_gz({"a-1/pyproject.toml": b"[project]"})) == BuildSystem()
    own = b"[build-system]\nrequires = ['hatchling']\nbuild-backend = 'hatchling.build'"
    wanted = BuildSystem(requires=("hatchling",), backend="hatchling.build")
    assert read(file, tar_gz({"./a-1/pyproject.toml": own})) == wanted
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as zipped:
        zipped.writestr("a-1/pyproject.toml", own)
    assert read(file, out.getvalue(), "a-1.zip") == wanted


@pytest.mark.parametrize(
    "odd",
    [
        member("../outside", tarfile.REGTYPE),
        member("a-1/../../outside", tarfile.REGTYPE),
        member("/etc/outside", tarfile.REGTYPE),
        member("a-1/link", tarfile.SYMTYPE, "../../outside"),
        member("a-1/link", tarfile.SYMTYPE, "/etc/passwd"),
        member("a-1/hard", tarfile.LNKTYPE, "/etc/passwd"),
        member("a-1/hard", tarfile.LNKTYPE, "../outside"),
        member("a-1/device", tarfile.CHRTYPE),
        member("a-1/pipe", tarfile.FIFOTYPE),
        member("b-1/second", tarfile.REGTYPE),
    ],
    ids=lambda info: f"{info.name} {info.linkname}",
)
def test_what_would_not_stay_inside_is_refused(odd: tarfile.TarInfo, file: Path) -> None:
    with pytest.raises(BuildError, match=r"^a-1\.tar\.gz: the source archive cannot be used: "):
        read(file, tar_gz({"a-1/setup.py": b""}, odd))


def test_a_link_inside_is_none_of_them(file: Path) -> None:
    read(file, tar_gz({"a-1/x/setup.py": b""}, member("a-1/x/y", tarfile.SYMTYPE, "../z")))


def test_a_bomb_is_refused_before_it_is_unpacked(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_archive, "MOST_BYTES", 1000)
    with pytest.raises(BuildError, match="it unpacks to more than 1000 bytes"):
        read(file, tar_gz({"a-1/zeros": bytes(2000)}))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as zipped:
        zipped.writestr("a-1/zeros", bytes(2000))
    with pytest.raises(BuildError, match="it unpacks to more than 1000 bytes"):
        read(file, out.getvalue(), "a-1.zip")
    monkeypatch.setattr(source_archive, "MOST_MEMBERS", 2)
    with pytest.raises(BuildError, match="it has more than 2 members"):
        read(file, tar_gz({f"a-1/{n}": b"" for n in range(3)}))


@pytest.mark.parametrize("body", [b"", b"no archive", b"\x1f\x8b"])
def test_what_is_no_archive_is_named(body: bytes, file: Path) -> None:
    for name in ("a-1.tar.gz", "a-1.zip"):
        with pytest.raises(BuildError, match=r"^a-1\.(tar\.gz|zip): the source archive cannot be used"):
            read(file, body, name)


@pytest.mark.parametrize(
    "text",
    ["[", "build-system = 1", "[build-system]\nrequires = 1", "[build-system]\nrequires = [1]", "a = '\xff'"],
)
def test_a_broken_pyproject_is_named(text: str, file: Path) -> None:
    with pytest.raises(BuildError, match=r"^a-1\.tar\.gz: pyproject\.toml: "):
        read(file, tar_gz({"a-1/pyproject.toml": text.encode("latin-1")}))
