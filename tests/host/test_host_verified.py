"""Files that keep the bytes of their name: hashed once, and again after whatever may have changed them."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from reprobuild.host import verified
from reprobuild.host.verified import is_unchanged, read_sealed, sealed, stamp, unsealed

DATA = b"some bytes" * 1000
SHA256 = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(DATA)
    return path


def change_unseen(path: Path) -> None:
    """Change a byte as a bad disk does, without a trace in the file's times."""
    status = path.stat()
    data = bytearray(path.read_bytes())
    data[5] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_verified_file_is_not_read_again(file: Path) -> None:
    assert is_unchanged(file, SHA256)
    change_unseen(file)
    assert is_unchanged(file, SHA256)


@pytest.mark.parametrize("harm", ["flip", "cut", "empty", "longer"])
def test_whatever_writes_to_it_is_found(file: Path, harm: str) -> None:
    stamp(file, SHA256)
    with file.open("r+b") as opened:
        if harm == "flip":
            opened.write(b"t")
        else:
            opened.truncate({"cut": len(DATA) - 1, "empty": 0, "longer": len(DATA) + 1}[harm])
    assert not is_unchanged(file, SHA256)


@pytest.mark.parametrize("event", ["boot", "week", "copy", "other name"])
def test_when_it_is_read_again(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, event: str
) -> None:
    stamp(file, SHA256)
    change_unseen(file)
    sha256 = SHA256
    match event:
        case "boot":
            monkeypatch.setattr(verified, "_boot", lambda: "another")
        case "week":
            later = time.time() + 8 * 24 * 3600
            monkeypatch.setattr(time, "time", lambda: later)
        case "copy":
            copy = tmp_path / "copy"
            copy.write_bytes(file.read_bytes())
            os.utime(copy, ns=(0, file.stat().st_mtime_ns))
            file = copy
        case _:
            sha256 = hashlib.sha256(b"").hexdigest()
    assert not is_unchanged(file, sha256)


def test_what_cannot_be_read_is_no_damage(file: Path) -> None:
    with pytest.raises(FileNotFoundError):
        is_unchanged(file.with_name("missing"), SHA256)
    with pytest.raises(IsADirectoryError):
        is_unchanged(file.parent, SHA256)


def test_what_is_no_file_is_damaged_and_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "a.json"
    os.mkfifo(pipe)
    assert read_sealed(pipe) == b""
    assert not is_unchanged(pipe, SHA256)


def test_a_sealed_file_that_is_too_large_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(sealed("a.json", b"content"))
    monkeypatch.setattr(verified, "_MOST", 10)
    assert read_sealed(file) == b""


def test_a_seal_holds_content_and_name() -> None:
    data = sealed("a", b"x\ny")
    assert unsealed("a", data) == b"x\ny"
    assert unsealed("b", data) is None
    assert unsealed("a", data[:-1]) is None
    assert unsealed("a", b"") is None
    assert unsealed("a", bytes([data[0] ^ 1]) + data[1:]) is None


def test_a_sealed_file_is_read_or_counts_as_empty(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    assert read_sealed(file) == b""
    file.write_bytes(sealed("a.json", b"content"))
    assert read_sealed(file) == b"content"
    assert read_sealed(file.rename(tmp_path / "b.json")) == b""
