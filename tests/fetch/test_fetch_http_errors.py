"""What a failed download says."""

from __future__ import annotations

import logging
import socket
from datetime import UTC, datetime
from pathlib import Path

import pytest
import requests
import trustme

from reprobuild.fetch.download import Patience
from reprobuild.fetch.http_errors import reason_of
from reprobuild.fetch.store import Store
from reprobuild.net.session import session
from support.fetched import BIG, SMALL, fails
from support.fetching import check, lock_of, sha256
from support.fixtures import fixtures_of
from support.server import Server, serve

globals().update(fixtures_of("support.fetched"))


def test_no_server_at_all(store: Store) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/a.whl"
    assert "Connection refused" in fails(lock_of({url: SMALL}), store).message


def test_a_host_without_an_address(store: Store) -> None:
    assert "wheels.invalid: " in fails(lock_of({"https://wheels.invalid/a.whl": SMALL}), store).message


def test_a_redirect_without_end(server: Server, store: Store) -> None:
    url = server.add("/a.whl", location="/a.whl")
    assert "redirects" in fails(lock_of({url: SMALL}), store).message
    assert len(server.log) < 50


def test_a_wheel_that_is_gone_fails_at_once(server: Server, store: Store) -> None:
    error = fails(lock_of({server.url + "/a.whl": SMALL}), store)
    assert f"a.whl: {server.url[7:]} answers 404 Not Found" == error.message
    assert "reprobuild lock --upgrade p0" in error.hint
    assert len(server.log) == 1


def test_a_debian_package_that_is_gone(server: Server, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPROBUILD_DEBIAN_MIRROR", server.url)
    error = fails(lock_of({}, {"libc6": b"a deb"}), store)
    assert "libc6_1_amd64.deb: 127.0.0.1" in error.message
    assert "current versions only" in error.hint
    assert "lock --upgrade" in error.hint


def test_behind_a_redirect_both_hosts_are_named(server: Server, store: Store) -> None:
    with serve() as other:
        target = other.add("/files/a.whl?token=signed-secret", b"tampered")
        other.add("/files/a.whl", b"tampered")
        error = fails(lock_of({server.add("/a.whl", location=target): SMALL}), store)
        assert server.url[7:] in error.message
        assert other.url[7:] in error.message
        assert "secret" not in error.message


@pytest.mark.parametrize("length", [True, False])
def test_a_page_in_place_of_a_file(server: Server, store: Store, length: bool) -> None:
    page = b"<html>please log in</html>"
    url = server.add("/a.whl", page, content_type="text/html; charset=utf-8", length=length)
    error = fails(lock_of({url: BIG}), store)
    assert f"{sha256(page)} ({len(page)} bytes, a web page)" in error.message
    check(store)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_refuses(
    server: Server,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    scheme: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv(f"{scheme}_proxy", server.url.replace("//", "//someone:wrong-secret@"))
    server.proxy_login = "someone:proxy-secret"
    error = fails(lock_of({f"{scheme}://wheels.example/a.whl": SMALL}), store)
    assert "wheels.example" in error.message
    assert "407" in error.message
    assert "proxy" in error.hint
    assert "secret" not in error.message + error.hint + caplog.text


def test_a_certificate_that_is_not_trusted_fails_at_once(ca: trustme.CA, store: Store) -> None:
    with serve(certificate=ca.issue_cert("127.0.0.1")) as server:
        error = fails(lock_of({server.add("/a.whl", SMALL): SMALL}), store, Patience(pause=60))
    assert "its certificate is not trusted" in error.message
    assert "REQUESTS_CA_BUNDLE" in error.hint
    assert server.log == []


@pytest.mark.parametrize(
    ("begins", "ends"), [(None, datetime(2024, 1, 1, tzinfo=UTC)), (datetime(2100, 1, 1, tzinfo=UTC), None)]
)
def test_a_certificate_of_another_time_may_be_the_clock_s_fault(
    ca: trustme.CA,
    store: Store,
    begins: datetime | None,
    ends: datetime | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    with serve(certificate=ca.issue_cert("127.0.0.1", not_before=begins, not_after=ends)) as server:
        error = fails(lock_of({server.add("/a.whl", SMALL): SMALL}), store, Patience(pause=60))
    assert "its certificate is not trusted" in error.message
    assert error.hint.startswith("check the clock of this machine, which says 20")


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_password_fails_at_once_and_is_never_seen(
    server: Server,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    status: int,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("PIP_INDEX_URL", server.url.replace("//", "//someone:wrong-secret@") + "/simple")
    login = "someone:index-secret" if status == 401 else "someone:wrong-secret"
    error = fails(lock_of({server.add("/a.whl", SMALL, login=login, status=status): SMALL}), store)
    assert f"answers {status} " in error.message
    assert "netrc" in error.hint
    assert "PIP_INDEX_URL" in error.hint
    assert "secret" not in error.message + error.hint + caplog.text + repr(error.__context__)
    assert len(server.log) == 1


def test_a_host_that_does_not_answer_is_said_in_the_system_s_words() -> None:
    with session() as http, pytest.raises(requests.ConnectionError) as caught:
        http.get("http://127.0.0.1:9/simple/")
    assert reason_of(caught.value) == "Connection refused"
    assert reason_of(ValueError("it has 2 metadata files")) == "it has 2 metadata files"
