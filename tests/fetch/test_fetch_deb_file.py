"""A stranger's Debian package: what it says of itself, within limits, and its entry in apt's index."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from debian.debfile import DebError, DebFile

from reprobuild.errors import BuildError
from reprobuild.fetch import deb_file
from reprobuild.fetch.deb_file import archive_entry, control_file
from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.oci.tar_fields import LayerRefused
from support.resolving import debian


def package(head: tarfile.TarInfo, size: int, text: bytes) -> DebFile:
    """Return a package whose control.tar begins with a header and some of its content."""
    head.size = size
    packed = zlib.compressobj(1, zlib.DEFLATED, 31)
    control = packed.compress(head.tobuf()) + packed.compress(text) + packed.flush()
    found = b"!<arch>\n"
    members = {"debian-binary": b"2.0\n", "control.tar.gz": control, "data.tar": bytes(1024)}
    for name, data in members.items():
        row = f"{name:<16}{'0':<12}{'0':<6}{'0':<6}{'100644':<8}{len(data):<10}`\n"
        found += row.encode() + data + b"\n" * (len(data) % 2)
    return DebFile(fileobj=io.BytesIO(found))


def test_the_control_file_is_read() -> None:
    text = b"Package: a\nVersion: 1\n"
    found = control_file(package(tarfile.TarInfo("./control"), len(text), text.ljust(1536, b"\0")))
    assert dict(found) == {"Package": "a", "Version": "1"}


def test_a_control_file_without_end_is_not_read_into_memory() -> None:
    """Some megabytes of a package took gigabytes, outside of any limit."""
    with pytest.raises(DebError, match="its control file is too long"):
        control_file(package(tarfile.TarInfo("./control"), 1 << 34, b"A" * (32 << 20)))


def test_a_header_without_end_is_not_read_into_memory() -> None:
    head = tarfile.TarInfo("x")
    head.type = tarfile.XHDTYPE
    with pytest.raises(LayerRefused, match="a header has 1,073,741,824 bytes"):
        control_file(package(head, 1 << 30, b"A"))


def laid_out(home: Home, data: bytes, locked: bytes | None = None) -> tuple[Path, str]:
    """A package of these bytes as it is laid out, and its entry; the lock may name others."""
    sha256 = hashlib.sha256(data if locked is None else locked).hexdigest()
    path = Store(home).path(sha256)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    package = replace(debian("tool", "1"), sha256=sha256, size=len(data))
    return path.parent / package.filename, archive_entry(package, store=Store(home), folder=path.parent)


def deb(folder: Path, compression: str = "xz") -> bytes:
    root = folder / "root"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text(
        "Package: tool\nVersion: 1\nArchitecture: amd64\nMaintainer: X <x@example.org>\nDescription: x\n"
    )
    (root / "odd").write_bytes(b"x" * 101)
    command = [
        "dpkg-deb",
        f"-Z{compression}",
        "--root-owner-group",
        "--build",
        str(root),
        str(folder / "tool.deb"),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return (folder / "tool.deb").read_bytes()


def files_of(package: Path) -> bytes:
    return subprocess.run(["dpkg-deb", "--fsys-tarfile", package], check=True, capture_output=True).stdout


def test_packages_are_laid_out_inflated_with_the_same_files(tmp_path: Path) -> None:
    data = deb(tmp_path)
    # After the first member comes one of an odd size, which deb(5) allows: those that follow stay in place.
    odd = b"%-16s%-12d%-6d%-6d%-8s%-10d`\nabc\n" % (b"_note", 0, 0, 0, b"100644", 3)
    data = data[:72] + odd + data[72:]
    found, index = laid_out(Home(tmp_path / "home"), data)
    assert b"data.tar  " in found.read_bytes()
    assert b"data.tar.xz" not in found.read_bytes()
    assert files_of(found) == files_of(tmp_path / "tool.deb")
    assert subprocess.run(["dpkg-deb", "--info", found], check=False).returncode == 0
    assert f"SHA256: {hashlib.sha256(found.read_bytes()).hexdigest()}\n" in index
    assert f"Size: {found.stat().st_size}\n" in index


def test_what_cannot_be_inflated_is_left_to_dpkg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = deb(tmp_path / "gzip", "gzip")
    assert laid_out(Home(tmp_path / "1"), other)[0].read_bytes() == other
    data = deb(tmp_path / "xz")
    damaged = data[:-40] + bytes(40)
    assert laid_out(Home(tmp_path / "2"), damaged)[0].read_bytes() == damaged
    monkeypatch.setattr(deb_file, "_LARGEST", 1000)  # of its files; what it says of itself is smaller
    assert laid_out(Home(tmp_path / "3"), data)[0].read_bytes() == data


def test_what_is_no_package_is_named(tmp_path: Path) -> None:
    for data in (b"", b"no archive", b"!<arch>\n", deb(tmp_path)[:100]):
        with pytest.raises(
            BuildError, match=r"tool_1_amd64\.deb, which the lock names, is not a Debian package"
        ):
            laid_out(Home(tmp_path / hashlib.sha256(data).hexdigest()), data)


def test_bytes_that_are_not_those_of_the_lock_are_refused(tmp_path: Path) -> None:
    """Also where they are a good package: the index that apt compares with is of what lies in the store."""
    with pytest.raises(BuildError, match=r"tool_1_amd64\.deb: its bytes in the store are damaged"):
        laid_out(Home(tmp_path / "home"), deb(tmp_path), locked=b"another")
