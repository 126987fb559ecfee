"""Locked conda packages, linked into a prefix: what comes out, what is named, what is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reprobuild.errors import BuildError
from reprobuild.fetch.store import Store
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.layers.conda import link
from reprobuild.lock.model import CondaPackage, Lock
from support.channel import Channel
from support.locks import LOCK

Put = Callable[..., CondaPackage]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def put(tmp_path: Path, home: Home) -> Put:
    """Make a package, lay it into the store, and return it as a locked one."""

    def make(name: str, **how: object) -> CondaPackage:
        file = Channel(tmp_path / "channel").add(name, "1.0", **how)  # type: ignore[arg-type]
        return stored(home, file, name)

    return make


def stored(home: Home, file: Path, name: str) -> CondaPackage:
    data = file.read_bytes()
    sha256 = hashlib.sha256(data).hexdigest()
    with Store(home).partial(sha256) as partial:
        assert partial is not None
        partial.file.write(data)
        Store(home).add(sha256, partial.path)
    subdir, filename = file.parent.name, file.name
    return CondaPackage(
        name=name,
        version="1.0",
        build="0",
        subdir=subdir,
        url=f"https://conda.example/forge/{subdir}/{filename}",
        sha256=sha256,
        md5=None,
        size=len(data),
        depends=(),
    )


def linked(home: Home, tmp_path: Path, *packages: CondaPackage) -> Path:
    lock: Lock = replace(LOCK, conda=packages)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return link(lock, Store(home), scratch, Console())


def test_scripts_are_not_run_and_named(
    home: Home, put: Put, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = tmp_path / "ran"
    script = f"#!/bin/sh\ntouch {ran}\n".encode()
    tool = put(
        "tool",
        files={"bin/.tool-post-link.sh": script, "bin/.tool-pre-link.sh": script, "bin/tool": b"#!/bin/sh\n"},
    )
    sets = put("sets", files={"etc/conda/activate.d/sets.sh": script})
    prefix = linked(home, tmp_path, tool, sets)
    assert (prefix / "bin/tool").is_file()
    assert not ran.exists()
    said = capsys.readouterr().err
    assert "are not run, since they could do anything: tool-post-link.sh, tool-pre-link.sh" in said
    assert "an image is not activated, so what these set is missing in it: sets.sh" in said


def test_without_scripts_nothing_is_said(
    home: Home, put: Put, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prefix = linked(home, tmp_path, put("plain", files={"share/a.txt": b"a"}, bz2=True))
    assert json.loads((prefix / "conda-meta/plain-1.0-0.json").read_bytes())["files"] == ["share/a.txt"]
    assert capsys.readouterr().err == ""


def test_a_python_package_that_is_there_twice(home: Home, put: Put, tmp_path: Path) -> None:
    """conda calls it otherwise, so nothing before the linked files tells."""
    info = "lib/python3.11/site-packages/Jinja2-3.1.4.dist-info/METADATA"
    package = put("templates-for-all", files={info: b"Name: Jinja2\nVersion: 3.1.4\n"})
    with pytest.raises(
        BuildError, match=r"jinja2 would be there twice: Jinja2-3\.1\.4\.dist-info from conda, and"
    ):
        linked(home, tmp_path, package)


def test_a_package_that_is_another_one(home: Home, put: Put, tmp_path: Path) -> None:
    package = put("one", files={"a": b"1"})
    with pytest.raises(
        BuildError, match=r"one-1.0-0.conda: says that it is one 1.0, and the lock has it as two"
    ):
        linked(home, tmp_path, replace(package, name="two"))


def test_a_file_that_is_no_package(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "linux-64/one-1.0-0.conda"
    file.parent.mkdir()
    file.write_bytes(b"<html>not here</html>")
    with pytest.raises(BuildError, match=r"one-1.0-0.conda: not a conda package: "):
        linked(home, tmp_path, stored(home, file, "one"))
