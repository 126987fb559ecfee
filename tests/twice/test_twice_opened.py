from __future__ import annotations

import os
from pathlib import Path

import pytest

from reprobuild.errors import RepeatError
from reprobuild.in_image.twice import opened as recorder
from reprobuild.twice import opened
from reprobuild.twice.opened import read_opened


def test_records_that_no_recorder_writes(tmp_path: Path) -> None:
    (tmp_path / "1.opened").write_bytes(b"/a\nb\n/c\0d\n/code/__pycache__/m.cpython-311.pyc\n/cut")
    assert read_opened(tmp_path) == (("/a", "/code/m.py"), False)
    (tmp_path / "2.opened").symlink_to("/etc/hostname")
    with pytest.raises(RepeatError, match=r"2\.opened"):
        read_opened(tmp_path)
    (tmp_path / "2.opened").unlink()
    os.mkfifo(tmp_path / "3.opened")
    with pytest.raises(RepeatError, match=r"3\.opened"):
        read_opened(tmp_path)


def test_that_some_may_be_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert opened.MOST_PATHS == recorder.MOST
    monkeypatch.setattr(opened, "MOST_PATHS", 3)
    (tmp_path / "1.opened").write_bytes(b"/a\n/b\n")
    (tmp_path / "2.opened").write_bytes(b"/c\n")
    assert read_opened(tmp_path) == (("/a", "/b", "/c"), False)
    (tmp_path / "2.opened").write_bytes(b"/c\n/d\n/e\n")
    assert read_opened(tmp_path)[1]
    (tmp_path / "2.opened").write_bytes(b"/c\n")
    monkeypatch.setattr(opened, "MOST_FILES", 1)
    assert read_opened(tmp_path) == (("/a", "/b"), True)
