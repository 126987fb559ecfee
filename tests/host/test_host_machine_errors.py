"""Faults of the machine that nothing nearer handles: what is known of them, and no more."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import pytest

from reprobuild.errors import StorageError
from reprobuild.host.machine_errors import machine_error, refuse_full_temporary
from support.disk import fill, tiny_disk

FULL = [OSError(number, os.strerror(number)) for number in (errno.ENOSPC, errno.EDQUOT)]


@pytest.mark.parametrize("error", FULL)
def test_a_full_disk_without_a_name_is_no_certain_one(
    error: OSError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder for temporary files has room: it was named as the one that is full."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = machine_error(error)
    assert isinstance(found, StorageError)
    assert found.message == f"{error.strerror}; the system does not say where"
    assert all(word in found.hint for word in ("df -i", "REPROBUILD_HOME", "TMPDIR", str(tmp_path)))


@pytest.mark.parametrize("scarce", ["bytes", "inodes"])
def test_a_folder_for_temporary_files_that_is_full_is_named(
    scarce: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tiny_disk(tmp_path / "tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        fill(folder, scarce)
        found = machine_error(FULL[0])
    assert isinstance(found, StorageError)
    assert found.message.startswith(f"{folder}: No space left on device (")
    assert found.hint.startswith("free some space there, or name another folder for temporary files")


def test_a_bug_stays_one(tmp_path: Path) -> None:
    assert machine_error(FileNotFoundError(errno.ENOENT, "gone", str(tmp_path / "x"))) is None
    assert machine_error(ValueError("x")) is None


def test_a_program_that_found_no_room_for_temporary_files(tmp_path: Path) -> None:
    refuse_full_temporary("it failed", tmp_path)
    with pytest.raises(StorageError, match="Disk quota exceeded"):
        refuse_full_temporary("tar: Disk quota exceeded", tmp_path)
