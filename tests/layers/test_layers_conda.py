"""Locked conda packages, linked into a prefix: what comes out, what is named, what is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reprobuild.errors import BuildError
from reprobuild.fetch import conda_archive
from reprobuild.fetch.store import Store
from reprobuild.host import sandbox
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.layers.conda import link
from reprobuild.lock.model import Lock
from reprobuild.lock.packages import CondaPackage
from support.channel import Channel
from support.conda_archives import conda_archive as archive_of
from support.conda_archives import listed, member
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
    return link(lock, Store(home), scratch, Console()).prefix


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
    assert "an image is not activated, so what these scripts set is missing in it: sets.sh" in said


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
        BuildError, match=r"jinja2 would be installed twice: as Jinja2-3\.1\.4\.dist-info by conda, and"
    ):
        linked(home, tmp_path, package)


def test_a_package_that_is_another_one(home: Home, put: Put, tmp_path: Path) -> None:
    package = put("one", files={"a": b"1"})
    with pytest.raises(
        BuildError, match=r"one-1.0-0.conda: says that it is one 1.0 0, and the lock has it as two"
    ):
        linked(home, tmp_path, replace(package, name="two"))


def test_a_file_that_is_no_package(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "linux-64/one-1.0-0.conda"
    file.parent.mkdir()
    file.write_bytes(b"<html>not here</html>")
    with pytest.raises(BuildError, match=r"one-1.0-0.conda: not a conda package: "):
        linked(home, tmp_path, stored(home, file, "one"))


def test_a_name_of_reprobuild_s_own_is_refused(home: Home, put: Put, tmp_path: Path) -> None:
    package = put("hook", files={"site-packages/reprobuild_hook.py": b"EVIL = 1\n"}, noarch=True)
    python = put("python", files={"bin/python3.11": b"x"})
    with pytest.raises(BuildError, match=r"conda packages: has the file .*reprobuild_hook\.py', a name"):
        linked(home, tmp_path, package, python)


@pytest.fixture
def host_file(tmp_path: Path) -> Path:
    """Return a private file of this machine that is none of a package's business."""
    folder = tmp_path / "host/.ssh"
    folder.mkdir(parents=True)
    (folder / "id_rsa").write_text("PRIVATE KEY")
    (folder / "id_rsa").chmod(0o600)
    return folder / "id_rsa"


def through_a_link(home: Home, tmp_path: Path, host_file: Path) -> CondaPackage:
    """Return a package with a link to a folder of this machine, and a file of that folder as its own."""
    data = archive_of([member("l", str(host_file.parent))], [listed("l", "softlink"), listed("l/id_rsa")])
    file = tmp_path / "evil/linux-64/evil-1.0-0.conda"
    file.parent.mkdir(parents=True)
    file.write_bytes(data)
    return stored(home, file, "evil")


def test_a_file_of_this_machine_is_refused_before_anything_is_linked(
    home: Home, tmp_path: Path, host_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "run", None)
    with pytest.raises(BuildError, match=r"evil-1\.0-0\.conda: refused: .* l/id_rsa"):
        linked(home, tmp_path, through_a_link(home, tmp_path, host_file))


def test_the_linker_itself_sees_nothing_of_this_machine(
    home: Home, tmp_path: Path, host_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a check may have missed."""
    monkeypatch.setattr(conda_archive, "hold", lambda *_: conda_archive.Contents())
    with pytest.raises(BuildError, match="the conda packages cannot be installed"):
        linked(home, tmp_path, through_a_link(home, tmp_path, host_file))
    assert not [p for p in (tmp_path / "scratch").rglob("*") if p.is_file() and b"PRIVATE" in p.read_bytes()]


@pytest.mark.parametrize("path", ["../../../outside", "/link/out/outside"])
def test_the_linker_itself_writes_nothing_elsewhere(
    home: Home, tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conda_archive, "hold", lambda *_: conda_archive.Contents())
    file = tmp_path / "evil/linux-64/evil-1.0-0.conda"
    file.parent.mkdir(parents=True)
    file.write_bytes(archive_of([member("a", b"a")], [listed("a"), listed(path)]))
    before = set(tmp_path.rglob("outside"))
    with pytest.raises(BuildError):
        linked(home, tmp_path, stored(home, file, "evil"))
    assert set(tmp_path.rglob("outside")) == before
