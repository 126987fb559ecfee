"""Which libraries change how subnormal numbers are treated."""

from __future__ import annotations

from pathlib import Path

import pytest

import reprobuild.in_image.selftest.command_line  # noqa: F401 -- the checks are registered
from reprobuild.in_image.selftest import subnormals


def test_packages_with_compiled_code_are_found_by_their_files() -> None:
    found = set(subnormals.compiled_packages())
    assert "zstandard" in found
    assert not found & {"pytest", "torch", "numpy"}


def test_an_import_that_fails_or_dies_is_told_and_the_rest_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dies_.py").write_text("import os; os._exit(3)")
    (tmp_path / "raises_.py").write_text("print('a\\tkept'); raise OSError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert subnormals.import_each(["json", "raises_", "dies_", "zstandard"]) == {
        "json": "kept",
        "raises_": "not imported: OSError",
        "dies_": "not imported: the import ended the process with status 3",
    }
