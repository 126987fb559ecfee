"""Two archives of images.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from reprobuild.cli import cli
from support.images import PACK, Entry, docker_archive, layer, layout


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str]:
    """Two archives that differ in a file's content and mode, a new file, and a variable."""
    one = layer("etc/", Entry(path="etc/a", content=b"one\n"))
    other = layer("etc/", Entry(path="etc/a", content=b"two\n", mode=0o600), "new")
    first = docker_archive(tmp_path / "1.tar", [one], {"Env": ["A=1"]})
    second = layout(
        tmp_path / "2", {"x:1": ([PACK["zstd"](layer(Entry(path="etc/a"))), other], {"Env": ["A=2"]})}
    )
    return str(first), str(second)


def run(*argv: str) -> Result:
    return CliRunner().invoke(cli, argv)
