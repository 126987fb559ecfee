"""What diffoscope says of two files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.two_archives import run

pytest_plugins = ["support.two_archives"]


def test_diffoscope_is_shown_both_files(
    pair: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in that prints what it was given: the files as the images have them, the hidden one not."""
    program = tmp_path / "diffoscope"
    program.write_text(
        '#!/bin/sh\nfor last; do before=$this; this=$last; done\ncd "$this/.." && cat a/etc/a b/etc/a\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert "one\ntwo\n" in run("compare", *pair).stdout
