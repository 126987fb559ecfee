"""Packages and shared objects that a test makes, for checks of what the request names.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reprobuild.in_image.selftest import linkage, location, requested
from reprobuild.in_image.selftest.outcomes import NOTES


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The site-packages of an environment that the checks take for the image's."""
    folder = tmp_path / "lib/python3/site-packages"
    folder.mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(location, "image_file", lambda name: tmp_path / name)
    # Not this machine's own, which has more than an image.
    (tmp_path / "lib/system").mkdir()
    (tmp_path / "lib/system/libc.so.6").touch()
    monkeypatch.setattr(linkage, "SYSTEM_FOLDERS", (str(tmp_path / "lib/system"),))
    monkeypatch.setattr(requested, "gpu_missing", lambda: "no GPU is visible here")
    linkage.installed_objects.cache_clear()
    linkage.library_names.cache_clear()
    NOTES.clear()
    return folder
