"""Small bundles: locks of a few bytes, and a tool that needs no index.

PYTEST_DONT_REWRITE: test modules import its functions before pytest loads its fixtures.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reprobuild.bundle import write
from reprobuild.bundle.contents import INSTALL, Member
from reprobuild.bundle.tool import Tool
from reprobuild.bundle.write import Written, write_bundle
from reprobuild.fetch.store import Store
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.lock.model import Lock
from reprobuild.lock.packages import PythonPackage
from support.fetching import lock_of, sha256
from support.locks import SMALL

TORCH, PANDAS, LIBC = b"the bytes of torch" * 99, b"pandas", b"libc6"
SCRIPT = b"#!/bin/sh\nexit 0\n"


def host_in(folder: Path) -> Host:
    return Host(Home(folder), Console(quiet=True))


def small_locks() -> dict[str, list[Lock]]:
    """Two locks of a few bytes a file; all that the first has, the second has too."""
    data = {"torch": TORCH}
    python = [_with_bytes(p, data.get(p.name, p.name.encode())) for p in SMALL.python]
    debian = [_with_bytes(p, p.name.encode()) for p in SMALL.debian]
    one = replace(SMALL, request=replace(SMALL.request, name="cpu"), python=python, debian=debian)
    pandas = lock_of({"https://index.example/pandas-1-py3-none-any.whl": PANDAS}).python[0]
    two = replace(
        one, request=replace(one.request, name="frames"), python=[*python, replace(pandas, name="pandas")]
    )
    return {"pylock.cpu.toml": [one], "pylock.frames.toml": [two]}


def _with_bytes(package: Any, data: bytes) -> Any:
    if isinstance(package, PythonPackage):
        return replace(package, wheel=_with_bytes(package.wheel, data))
    return replace(package, sha256=sha256(data), size=len(data))


def small_files() -> set[bytes]:
    """The contents of the files of both."""
    return {TORCH, PANDAS, LIBC, b"numpy", b"pip", b"python3.11"}


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host that has the files of `small_locks`, and whose tool is one script and one wheel."""
    host = host_in(tmp_path / "home")
    for data in small_files():
        Store(host.home).add_document(data)
    texts = {INSTALL: SCRIPT, "reprobuild/reprobuild-1-py3-none-any.whl": b"wheel"}
    parts = Tool(
        members=tuple(Member.of(path, text) for path, text in texts.items()), texts=texts, pythons=("3.11",)
    )
    monkeypatch.setattr(write, "tool", lambda _host: parts)
    return host


def small_bundle(host: Host, file: Path) -> Written:
    return write_bundle(small_locks(), file, host)


def altered(file: Path, change: Callable[[list[tuple[tarfile.TarInfo, bytes]]], object]) -> None:
    """Write a bundle anew, with its members changed by a stranger's hand."""
    with tarfile.open(file) as tar:
        members = [(info, content.read()) for info in tar if (content := tar.extractfile(info)) is not None]
    change(members)
    with tarfile.open(file, "w", format=tarfile.PAX_FORMAT) as tar:
        for info, data in members:
            info.size = len(data) if info.isreg() else 0
            tar.addfile(info, io.BytesIO(data))


def with_manifest(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    def in_members(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        table = json.loads(members[1][1])
        change(table)
        members[1] = (members[1][0], json.dumps(table).encode())

    altered(file, in_members)


def contents(file: Path) -> dict[str, bytes]:
    with tarfile.open(file) as tar:
        return {info.name: content.read() for info in tar if (content := tar.extractfile(info)) is not None}
