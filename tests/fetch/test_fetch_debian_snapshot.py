"""Debian packages that have left the mirror, found again in a snapshot archive."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from reprobuild.errors import FetchError, HostError
from reprobuild.fetch.scheduler import fetch
from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.lock.model import Lock
from support.fetching import QUICK, Meter, check, lock_of
from support.server import Server, serve

DEB = b"a deb"
SHA1 = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serve() as running:
        monkeypatch.setenv("REPROBUILD_DEBIAN_MIRROR", running.url + "/debian")
        monkeypatch.setenv("REPROBUILD_SNAPSHOT", running.url + "/snap/")
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(Home(tmp_path / "home"))


def lock(as_of: date | None = None) -> Lock:
    found = lock_of({}, {"libc6": DEB})
    package = replace(found.debian[0], version="1:2.36-9+deb12u10")
    return replace(found, request=replace(found.request, as_of=as_of), debian=[package])


def answer(*rows: Any) -> bytes:
    return json.dumps({"binary": "libc6", "result": list(rows), "fileinfo": {}}).encode()


FOUND = "/snap/mr/binary/libc6/1%3A2.36-9%2Bdeb12u10/binfiles"


def test_by_its_name(server: Server, store: Store) -> None:
    rows = [{"architecture": "arm64", "hash": "f" * 40}, {"architecture": "amd64", "hash": SHA1}]
    server.add(FOUND, answer(*rows))
    server.add(f"/snap/file/{SHA1}", DEB)
    fetch(lock(), store, Meter(), patience=QUICK)
    check(store, DEB)
    assert [hit.status for hit in server.log] == [404, 200, 200]
    assert server.log[0].path == "/debian/pool/main/libc6_1_amd64.deb"


def test_by_the_date_of_the_request(server: Server, store: Store) -> None:
    server.add("/snap/archive/debian/20240915T000000Z/pool/main/libc6_1_amd64.deb", DEB)
    fetch(lock(date(2024, 9, 15)), store, Meter(), patience=QUICK)
    check(store, DEB)


def test_what_the_mirror_has_is_not_asked_for(server: Server, store: Store) -> None:
    server.add("/debian/pool/main/libc6_1_amd64.deb", DEB)
    fetch(lock(), store, Meter(), patience=QUICK)
    assert len(server.log) == 1


def test_a_redirect_as_the_real_one_gives(server: Server, store: Store) -> None:
    server.add(
        "/snap/archive/debian/20240915T000000Z/pool/main/libc6_1_amd64.deb",
        location=f"{server.url}/snap/file/{SHA1}",
    )
    server.add(f"/snap/file/{SHA1}", DEB)
    fetch(lock(date(2024, 9, 15)), store, Meter(), patience=QUICK)
    check(store, DEB)


@pytest.mark.parametrize(
    "said", [b"", b"[]", b"{}", answer(), answer({"architecture": "amd64", "hash": "../../x"}), answer(1)]
)
def test_a_snapshot_that_does_not_know_it(server: Server, store: Store, said: bytes) -> None:
    server.add(FOUND, said)
    with pytest.raises(FetchError, match="404 Not Found"):
        fetch(lock(), store, Meter(), patience=QUICK)
    check(store)
    assert len(server.log) == 2


def test_other_bytes_are_refused(server: Server, store: Store) -> None:
    server.add(FOUND, answer({"architecture": "amd64", "hash": SHA1}))
    server.add(f"/snap/file/{SHA1}", b"other")
    with pytest.raises(FetchError, match="gives another file than the one locked"):
        fetch(lock(), store, Meter(), patience=QUICK)
    check(store)


def test_without_one_the_error_says_how_to_name_it(
    server: Server, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REPROBUILD_SNAPSHOT")
    with pytest.raises(FetchError, match="404") as bad:
        fetch(lock(), store, Meter(), patience=QUICK)
    assert "REPROBUILD_SNAPSHOT" in bad.value.hint
    assert len(server.log) == 1


def test_no_mirror_at_all(server: Server, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APT_CONFIG", "/dev/null")
    monkeypatch.setattr("reprobuild.fetch.debian_mirrors._entries", lambda _: ())
    monkeypatch.delenv("REPROBUILD_DEBIAN_MIRROR")
    server.add("/snap/archive/debian/20240915T000000Z/pool/main/libc6_1_amd64.deb", DEB)
    fetch(lock(date(2024, 9, 15)), store, Meter(), patience=QUICK)
    check(store, DEB)
    monkeypatch.delenv("REPROBUILD_SNAPSHOT")
    (store.path(lock().debian[0].sha256)).unlink()
    with pytest.raises(HostError, match="no mirror"):
        fetch(lock(), store, Meter(), patience=QUICK)
