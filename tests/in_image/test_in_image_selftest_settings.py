"""What the self-test says of processes that do not see the variables of the lock."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from reprobuild.in_image.selftest import settings
from reprobuild.in_image.selftest.outcomes import Failed

LOCKED = {"OMP_NUM_THREADS": "1", "NCCL_ALGO": "Ring"}


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The first python3 on PATH, which a test may replace."""
    path = tmp_path / "python3"
    path.symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(settings, "locked", lambda: {"variables": LOCKED})
    for name, value in LOCKED.items():
        monkeypatch.setenv(name, value)
    return path


def wrapper(path: Path, text: str) -> None:
    path.unlink()
    path.write_text(f"#!{shutil.which('bash')}\n{text}\n")
    path.chmod(0o755)


def test_processes_that_see_what_is_locked(python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert python.exists()
    wrapper(python, f'exec "{sys.executable}" "$@"')
    assert settings.setting_environment("cpu") is None
    monkeypatch.setenv("NCCL_ALGO", "Tree")
    assert settings.setting_environment("cpu") is None


def test_a_process_that_sees_something_else(python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    wrapper(python, f'exec "{sys.executable}" "$@"')
    with pytest.raises(Failed, match="not as locked in each process: OMP_NUM_THREADS"):
        settings.setting_environment("cpu")


def test_a_variable_that_is_drawn_at_each_start(python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "STARTS", 24)
    wrapper(python, f'((RANDOM % 2)) && export OMP_NUM_THREADS=7; exec "{sys.executable}" "$@"')
    with pytest.raises(Failed) as failed:
        settings.setting_environment("cpu")
    assert failed.value.detail == [{"what": "OMP_NUM_THREADS", "expected": "1", "got": "7"}]


def test_an_entry_point_that_sets_a_variable(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper(python, f'exec "{sys.executable}" "$@"')
    entry = tmp_path / "entry"
    entry.touch()
    wrapper(entry, 'export OMP_NUM_THREADS=7; shift; exec "$@"')
    monkeypatch.setenv(settings.START, json.dumps([str(entry), "--", "python3"]))
    with pytest.raises(Failed) as failed:
        settings.setting_environment("cpu")
    assert failed.value.detail == [{"what": "OMP_NUM_THREADS", "expected": "1", "got": "7"}]
    wrapper(entry, 'shift; exec "$@"')
    assert settings.setting_environment("cpu") is None


def test_another_python_on_path(python: Path) -> None:
    wrapper(python, "echo '[\"/other\", {}]'")
    with pytest.raises(Failed, match="python3 is that of /other"):
        settings.setting_environment("cpu")
    wrapper(python, "exit 3")
    with pytest.raises(Failed, match="ended with status 3"):
        settings.setting_environment("cpu")
