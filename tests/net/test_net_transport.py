"""HTTP as the user's settings have it: certificates, proxies, retries."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import requests
import trustme

from reprobuild.errors import HostError
from reprobuild.net import transport
from reprobuild.net.index_settings import ca_bundle, uv_environment
from reprobuild.net.session import scrub, session
from support.fixtures import fixtures_of
from support.net_servers import BUNDLES
from support.server import Server, ca_file, listening, serve

globals().update(fixtures_of("support.net_servers"))


class TestSession:
    def test_names_itself_and_has_a_time_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        seen: list[object] = []

        def send(self: object, request: requests.PreparedRequest, **options: object) -> requests.Response:
            seen.extend([request.headers["User-Agent"], options["timeout"]])
            return requests.Response()

        monkeypatch.setattr(requests.Session, "send", send)
        with session() as http:
            http.get("http://h.example/")
        assert str(seen[0]).startswith("reprobuild/")
        assert seen[1] == (15.0, 60.0)

    def test_tries_again(self, server: Server) -> None:
        with session(retries=2) as http:
            assert http.get(server.add("/a", b"ok", first=(503, 500))).content == b"ok"
            assert http.get(server.add("/b", b"ok", first=(503, 503, 503))).status_code == 503
            assert http.get(server.add("/c", status=404)).status_code == 404
        assert len(server.hits("/c")) == 1

    def test_proxy_of_pip(self, server: Server, pip_conf: Path) -> None:
        pip_conf.write_text(f"[global]\nproxy = {server.url.replace('://', '://me:geheim@')}\n")
        server.add("/a", b"through the proxy")
        server.proxy_login = "me:geheim"
        with session() as http:
            assert http.get("http://h.example/a").content == b"through the proxy"
        assert uv_environment()["HTTPS_PROXY"].endswith(server.url[7:])
        assert "geheim" not in scrub("geheim")

    @pytest.mark.parametrize("variable", [*BUNDLES[:3], "PIP_CERT", "pip.conf"])
    def test_ca_of_the_user(
        self, variable: str, pip_conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ca = trustme.CA()
        with serve(certificate=ca.issue_cert("127.0.0.1")) as tls:
            address = tls.add("/a", b"ok")
            with session(retries=0) as http, pytest.raises(requests.exceptions.SSLError):
                http.get(address)
            bundle = ca_file(ca, tmp_path)
            if variable == "pip.conf":
                pip_conf.write_text(f"[global]\ncert = {bundle}\n")
            else:
                monkeypatch.setenv(variable, str(bundle))
            with session(retries=0) as http:
                assert http.get(address).content == b"ok"
            assert uv_environment()["SSL_CERT_FILE"] == str(bundle)

    def test_a_file_of_cas_that_changes_is_read_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first, second = trustme.CA(), trustme.CA()
        monkeypatch.setenv("SSL_CERT_FILE", str(ca_file(first, tmp_path)))
        with serve(certificate=second.issue_cert("127.0.0.1")) as tls:
            address = tls.add("/a", b"ok")
            with session(retries=0) as http, pytest.raises(requests.exceptions.SSLError):
                http.get(address)
            ca_file(second, tmp_path)
            with session(retries=0) as http:
                assert http.get(address).content == b"ok"

    @pytest.mark.parametrize("with_bundle", [True, False])
    def test_certificate_of_another_host(
        self, with_bundle: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ca = trustme.CA()
        monkeypatch.setenv("SSL_CERT_FILE" if with_bundle else "UNUSED", str(ca_file(ca, tmp_path)))
        with serve(certificate=ca.issue_cert("h.example")) as tls, session(retries=0) as http:
            with pytest.raises(requests.exceptions.SSLError):
                http.get(tls.add("/a"))
            with pytest.raises(requests.exceptions.SSLError):
                http.get(tls.add("/a"), verify=False)

    @pytest.mark.parametrize("variable", ["SSL_CLIENT_CERT", "PIP_CLIENT_CERT", "pip.conf"])
    def test_certificate_of_this_machine(
        self, variable: str, pip_conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ca = trustme.CA()
        monkeypatch.setenv("SSL_CERT_FILE", str(ca_file(ca, tmp_path)))
        mine = tmp_path / "mine.pem"
        ca.issue_cert("client.example").private_key_and_cert_chain_pem.write_to_path(mine)
        with serve(certificate=ca.issue_cert("127.0.0.1"), clients=ca) as tls:
            address = tls.add("/a", b"ok")
            with session(retries=0) as http, pytest.raises(requests.exceptions.ConnectionError):
                http.get(address)
            assert "SSL_CLIENT_CERT" not in uv_environment()
            if variable == "pip.conf":
                pip_conf.write_text(f"[global]\nclient-cert = {mine}\n")
            else:
                monkeypatch.setenv(variable, str(mine))
            with session(retries=0) as http:
                assert http.get(address).content == b"ok"
        assert uv_environment()["SSL_CLIENT_CERT"] == str(mine)

    def test_certificate_of_this_machine_that_is_no_good(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        mine = tmp_path / "mine.pem"
        monkeypatch.setenv("SSL_CLIENT_CERT", str(mine))
        with pytest.raises(HostError, match=r"SSL_CLIENT_CERT names .*mine\.pem, which does not exist"):
            session()
        mine.write_text("rubbish")
        with pytest.raises(HostError, match=r"mine\.pem: no certificate with its key"):
            session()

    def test_ca_that_is_no_certificate(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "ca.pem").write_text("rubbish")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        with pytest.raises(HostError, match=r"ca\.pem: no CA certificates"):
            session()

    def test_ca_that_is_not_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert ca_bundle() is None
        monkeypatch.setenv("PIP_CERT", "/no/such.pem")
        with pytest.raises(HostError, match=r"PIP_CERT names /no/such\.pem"):
            session()


# --- answers without an end ---

_HEAD = b"HTTP/1.1 200 OK\r\n"
_CHUNKED = _HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
_GZIP = _HEAD + b"Content-Encoding: gzip\r\n\r\n"


@contextmanager
def endless(head: bytes, piece: bytes) -> Iterator[str]:
    """Serve an answer that begins with ``head`` and goes on with ``piece`` until nobody takes it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with suppress(OSError):
                self.wfile.write(head)
                while True:
                    self.wfile.write(piece)

        def log_message(self, *_: object) -> None:
            """Keep it off the tests' output."""

    with listening(Handler) as server:
        yield f"http://127.0.0.1:{server.server_port}/page"


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
        (_HEAD, b"A: b\r\n" * 1000),
        (_HEAD + b"A: ", b"a" * 65536),
        (_CHUNKED + b"0\r\n", b"A: b\r\n" * 1000),
        (_CHUNKED + b"1;", b"a" * 65536),
        (_CHUNKED, b"1;" + b"a" * 60000 + b"\r\nx\r\n"),
        (_CHUNKED, b"1\r\nx\r\n" * 10000),
        (_CHUNKED + b"-1\r\n", b"a" * 65536),
        (_CHUNKED + b"-5\r\n", b"a" * 65536),
        (_GZIP, gzip.compress(b"")),
        (_GZIP + gzip.compress(b"")[:10], b"\0\0\0\xff\xff" * 10000),
        (_GZIP, gzip.compress(bytes(1 << 20))),
        (_HEAD + b"\r\n", b"a" * 65536),
    ],
    ids=(
        "100",
        "headers",
        "header",
        "trailers",
        "chunk",
        "extensions",
        "chunks",
        "chunk to the end",
        "negative chunk",
        "gzips",
        "empty",
        "bomb",
        "body",
    ),
)
def test_an_answer_that_never_ends_does_so_here(
    head: bytes, piece: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "_MOST_LINES", 1 << 18)
    with endless(head, piece) as url, session(retries=0) as http, pytest.raises(requests.RequestException):
        transport.read_whole(http.get(url, stream=True), 1 << 18)


@pytest.mark.parametrize("length", [b"-1", b"five", b"+5", b"1_0", b"5, 5", b"9" * 40, b"9" * 5000, b""])
def test_a_length_that_is_no_number_is_not_waited_for(length: bytes) -> None:
    """The connection stays open, and http.client reads to its end."""
    open_still = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.wfile.write(_HEAD + b"Content-Length: " + length + b"\r\n\r\nhello")
            self.wfile.flush()
            open_still.wait(60)

        def log_message(self, *_: object) -> None:
            """Keep it off the tests' output."""

    with listening(Handler) as server, session(retries=1) as http:
        url = f"http://127.0.0.1:{server.server_port}/page"
        try:
            with pytest.raises(requests.RequestException, match="has the Content-Length"):
                http.get(url, timeout=(15, 15))
        finally:
            open_still.set()


def test_a_stream_that_inflates_to_nothing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_MOST_LINES", 1 << 18)
    nothing = endless(_GZIP, gzip.compress(b"") * 1000)
    with nothing as url, session(retries=0) as http, pytest.raises(requests.RequestException):
        for _ in http.get(url, stream=True).iter_content(1 << 12):
            pass


def test_a_refusal_without_end_is_tried_again_as_another_is() -> None:
    refusal = endless(b"HTTP/1.1 503 Wait\r\n\r\n", b"a" * 65536)
    with refusal as url, session(retries=1) as http, http.get(url, stream=True) as answer:
        assert answer.status_code == 503


def test_a_server_that_asks_for_years(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reprobuild.net.session.LONGEST_PAUSE", 0.1)
    address = server.add("/a", b"ok", first=(503,), retry_after="9" * 9)
    with session(retries=1) as http:
        assert http.get(address).content == b"ok"


def test_an_answer_that_comes_as_slowly_as_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "LONGEST", 0.5)
    slow = endless(_HEAD + b"\r\n", b"a")
    with slow as url, session(retries=0) as http, pytest.raises(requests.RequestException):
        http.get(url)
