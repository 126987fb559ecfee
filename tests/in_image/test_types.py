"""The types of the self-test program, against the torch and NumPy that it runs with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from torch_python import FILES, make_venv


@pytest.mark.slow
@pytest.mark.torch
def test_the_program_s_types_hold_against_the_real_torch(tmp_path: Path) -> None:
    """In the ordinary run of mypy, without torch, what comes from it has no types."""
    python = make_venv(tmp_path / "venv", torch=True)
    command = [
        *(sys.executable, "-m", "mypy", "--strict", "--config-file="),
        "--allow-untyped-calls",  # parts of torch are not typed
        *("--python-executable", str(python), "--cache-dir", str(tmp_path / "cache")),
        str(FILES / "selftest"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
