"""Fixtures: the command line, called in this process, and an apt that needs no mirror.

A test module takes them with ``pytest_plugins = ["support.commands"]``.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from reprobuild import cli
from reprobuild.lock.packages import DebianPackage
from reprobuild.resolve import resolver
from reprobuild.resolve.debian import DebianRequest
from support.resolving import BASE, debian
from support.schemas import hold_to_schema


@dataclass(frozen=True)
class Said:
    """What one call left."""

    status: int
    out: str
    err: str


Call = Callable[..., Said]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty folder in which the commands run."""
    path = tmp_path / "work"
    path.mkdir()
    monkeypatch.chdir(path)
    return path


@pytest.fixture
def call(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Call]:
    """Call reprobuild with arguments. No call may show a traceback."""
    logger = logging.getLogger("reprobuild")
    before = list(logger.handlers), logger.level

    def run(*argv: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["reprobuild", *argv])
        capsys.readouterr()
        status = cli.run_command_line()
        said = Said(status, *capsys.readouterr())
        assert "Traceback" not in said.err, said.err[-600:]
        hold_to_schema(argv, said.out)
        return said

    yield run
    logger.handlers, level = before[0], before[1]
    logger.setLevel(level)


@pytest.fixture
def apt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for apt, which needs a mirror."""

    def answer(wanted: DebianRequest, **_: Any) -> tuple[DebianPackage, ...]:
        found = (*BASE, *(debian(name, "1.0") for name in wanted.apt))
        return tuple(replace(package, architecture=wanted.architecture) for package in found)

    monkeypatch.setattr("reprobuild.resolve.debian_system.resolve_debian", answer)
    monkeypatch.setattr(resolver, "architecture", lambda: "amd64")
