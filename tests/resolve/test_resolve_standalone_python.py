"""Which standalone Python is locked, by the real uv, from a list and a server on loopback."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from reprobuild.errors import ResolveError
from reprobuild.fetch.scheduler import fetch
from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.lock.standalone_python import StandalonePython
from reprobuild.resolve import standalone_python
from reprobuild.resolve.standalone_python import resolve_standalone
from support.hosts import quiet_host
from support.locks import LOCK
from support.python_root import PYTHON
from support.resolving import request
from support.server import Server, serve
from support.standalone_python import VERSION, archive, locked, offer

WANTED = request(python=PYTHON, base={"debian": "trixie" if PYTHON != "3.13" else "bookworm"})


@pytest.fixture(scope="module")
def body() -> bytes:
    return archive()


@pytest.fixture
def server() -> Iterator[Server]:
    with serve() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "reprobuild")


def resolve(home: Home, **more: object) -> StandalonePython | None:
    own: dict[str, object] = {"existing": None, "upgrade": frozenset(), "host": quiet_host(home), **more}
    return resolve_standalone(WANTED, "amd64", **own)  # type: ignore[arg-type]


def test_the_build_that_uv_knows_is_locked_and_in_the_store(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Home, body: bytes
) -> None:
    url = offer(server, tmp_path, monkeypatch, body)
    found = resolve(home)
    assert found == locked(body, url)
    assert found is not None
    assert (found.version, found.minor) == (VERSION, PYTHON)
    assert Store(home).has(found.sha256, found.size)
    assert not list(home.folder("tmp").iterdir())
    lock = replace(LOCK, request=WANTED, standalone=found)
    server.log.clear()
    assert resolve(home, existing=lock) == found
    assert not server.log
    assert resolve(home, existing=lock, upgrade=frozenset({"python"})) == found
    assert server.log


def test_a_mirror_serves_the_lock_and_the_image_and_is_in_neither(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Home, body: bytes
) -> None:
    url = offer(server, tmp_path, monkeypatch, body, official=True)
    monkeypatch.setenv("UV_PYTHON_INSTALL_MIRROR", f"{server.url}/releases/download")
    found = resolve(home)
    assert found == locked(body, url)
    assert found is not None
    Store(home).remove(found.sha256)
    fetch(replace(LOCK, python=(), debian=(), standalone=found), Store(home), quiet_host(home).console)
    assert Store(home).has(found.sha256, found.size)


def test_other_bytes_than_uv_knows_are_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Home, body: bytes
) -> None:
    offer(server, tmp_path, monkeypatch, body, sha256="0" * 64)
    with pytest.raises(ResolveError, match=r"uv could not fetch a standalone [\s\S]*[Hh]ash") as caught:
        resolve(home)
    assert "UV_PYTHON_INSTALL_MIRROR" in caught.value.hint
    assert not list(home.folder("tmp").iterdir())
    assert not list(home.folder("store").rglob("*.tar.gz"))


def test_what_would_do_in_its_place(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Home, body: bytes
) -> None:
    offer(server, tmp_path, monkeypatch, body)
    with pytest.raises(ResolveError, match=r"Python 3\.12: uv knows no standalone build$") as caught:
        resolve_standalone(
            request(python="3.12"), "amd64", existing=None, upgrade=frozenset(), host=quiet_host(home)
        )
    for way in (
        "give --python 3.11 (bookworm), or --python 3.13 (trixie), or --python 3.9 (bullseye)",
        '[conda] channels = ["conda-forge"], packages = ["python =3.12"]',
        "--base-image python:3.12-slim",
    ):
        assert way in caught.value.hint
    with pytest.raises(ResolveError) as caught:
        resolve_standalone(
            request(python="3.12"),
            "amd64",
            existing=None,
            upgrade=frozenset(),
            fitting=("3.13", "3.12"),
            host=quiet_host(home),
        )
    assert "a Python of Debian's: give --python 3.13 (trixie)\n" in caught.value.hint


def test_a_build_of_a_later_day_does_not_count(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Home, body: bytes
) -> None:
    offer(server, tmp_path, monkeypatch, body, day="20240102")
    early, late = (replace(WANTED, as_of=day) for day in (date(2024, 1, 1), date(2024, 1, 2)))
    with pytest.raises(ResolveError, match=re.escape("of 2024-01-01 or earlier")):
        resolve_standalone(early, "amd64", existing=None, upgrade=frozenset(), host=quiet_host(home))
    found = resolve_standalone(late, "amd64", existing=None, upgrade=frozenset(), host=quiet_host(home))
    assert found is not None


def test_debian_s_own_is_none() -> None:
    for wanted in (request(), request(python="3.13"), request(python="3.12", base={"image": "a.example/b"})):
        assert not wanted.is_standalone
    for wanted in (request(python="3.12"), request(python="3.11", base={"debian": "trixie"})):
        assert wanted.is_standalone


def test_settings_of_the_project_choose_no_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_NO_CONFIG", "UV_CONFIG_FILE", "UV_PYTHON_DOWNLOADS_JSON_URL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "evil.json").write_text("{}")
    (tmp_path / "uv.toml").write_text('python-downloads-json-url = "evil.json"\n')
    monkeypatch.chdir(tmp_path)
    listed = standalone_python._uv(["list", "--only-downloads", "--output-format", "json"])
    assert b"cpython-3" in listed.stdout
