from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pypi_simple
import pytest
import requests
import trustme

from reprobuild.errors import HostError
from reprobuild.host import process
from reprobuild.net.index_settings import Indexes, ca_bundle, indexes, uv_environment
from reprobuild.net.session import ScrubFilter, scrub, session, without_credentials
from support.server import Server, ca_file, serve

BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR", "PIP_CERT")


@pytest.fixture(autouse=True)
def _no_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*BUNDLES, "SSL_CLIENT_CERT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[Server]:
    with serve() as running:
        yield running


@pytest.fixture
def pip_conf(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    path = tmp_path / "pip.conf"
    monkeypatch.setenv("PIP_CONFIG_FILE", str(path))
    return path


class TestIndexes:
    def test_default(self) -> None:
        assert indexes() == Indexes(default=pypi_simple.PYPI_SIMPLE_ENDPOINT)
        assert uv_environment()["UV_DEFAULT_INDEX"] == pypi_simple.PYPI_SIMPLE_ENDPOINT

    def test_pip_s_file(self, pip_conf: Path) -> None:
        pip_conf.write_text(
            "[global]\nindex_url = https://a.example/simple\n"
            "extra-index-url =\n  https://b.example/simple\n  file:///srv/wheels\n  https://c.example/simple\n"
            "[install]\nindex-url = https://i.example/simple\n[list]\nindex-url = https://l.example/\n"
        )
        extra = ("https://b.example/simple", "https://c.example/simple")
        assert indexes() == Indexes(default="https://i.example/simple", extra=extra)
        env = uv_environment()
        assert env["UV_DEFAULT_INDEX"] == "https://i.example/simple"
        assert env["UV_INDEX"] == " ".join(extra)

    def test_pip_s_variables_outrank_its_files(self, pip_conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        pip_conf.write_text("[global]\nindex-url = https://a.example/simple\n")
        monkeypatch.setenv("PIP_INDEX_URL", "https://v.example/simple")
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://x.example/ https://y.example/")
        expected = ("https://x.example/", "https://y.example/", "https://v.example/simple")
        assert indexes().all == expected

    def test_pip_s_files_in_their_order(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("PIP_CONFIG_FILE")
        monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "system"))
        monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "venv"))
        places = ["system/pip/pip.conf", "home/.config/pip/pip.conf", "venv/pip.conf"]
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        for place in places:
            path = tmp_path / place
            path.parent.mkdir(parents=True)
            path.write_text(f"[global]\nindex-url = https://{place.partition('/')[0]}.example/\n")
            assert indexes().default == f"https://{place.partition('/')[0]}.example/"

    def test_uv_s_variables_outrank_pip(self, pip_conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        pip_conf.write_text(
            "[global]\nindex-url = https://p.example/\nextra-index-url = https://q.example/\n"
        )
        monkeypatch.setenv("UV_INDEX", "corp=https://a.example/?x=1 https://b.example/")
        assert indexes().all == (
            "https://a.example/?x=1",
            "https://b.example/",
            "https://q.example/",
            "https://p.example/",
        )
        assert uv_environment()["UV_INDEX"].endswith("https://b.example/ https://q.example/")
        monkeypatch.setenv("UV_DEFAULT_INDEX", "main=https://u.example/")
        assert indexes().all == ("https://a.example/?x=1", "https://b.example/", "https://u.example/")
        assert not {"UV_INDEX", "UV_DEFAULT_INDEX"} & uv_environment().keys()

    @pytest.mark.parametrize("name", ["UV_DEFAULT_INDEX", "UV_INDEX_URL"])
    def test_uv_s_default(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(name, "https://u.example/simple")
        monkeypatch.setenv("UV_EXTRA_INDEX_URL", "https://e.example/")
        assert indexes() == Indexes(
            default="https://u.example/simple", extra=("https://e.example/",), from_uv=True
        )

    def test_uv_s_files(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("UV_NO_CONFIG")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
        monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "system"))
        for place, text in {
            "system": 'index-url = "https://s.example/"\n[pip]\nextra-index-url = ["https://p.example/"]\n',
            "user": '[[index]]\nname = "corp"\nurl = "https://u.example/"\n'
            '[[index]]\nurl = "https://hidden.example/"\nname = "h"\nexplicit = true\n'
            '[[index]]\nurl = "https://d.example/"\ndefault = true\n',
        }.items():
            (tmp_path / place / "uv").mkdir(parents=True)
            (tmp_path / place / "uv" / "uv.toml").write_text(text)
        assert indexes().all == ("https://u.example/", "https://p.example/", "https://d.example/")
        monkeypatch.setenv("UV_INDEX_CORP_USERNAME", "me")
        monkeypatch.setenv("UV_INDEX_CORP_PASSWORD", "p@ss")
        assert indexes().extra[0] == "https://me:p%40ss@u.example/"
        assert scrub("the p@ss is p%40ss") == "the *** is ***"

    @pytest.mark.parametrize("text", ["no = ] toml", "\xff"])
    def test_broken_files(self, text: str, pip_conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("UV_NO_CONFIG")
        pip_conf.write_text("no section")
        with pytest.raises(HostError, match="pip's settings"):
            indexes()
        assert scrub("https://a:b@h.example/") == "https://h.example/"
        monkeypatch.setenv("UV_CONFIG_FILE", str(pip_conf))
        pip_conf.write_bytes(text.encode("latin-1"))
        with pytest.raises(HostError, match=r"pip\.conf: cannot be read as uv's"):
            indexes()


class TestCredentials:
    @pytest.fixture
    def other(self) -> Iterator[Server]:
        with serve() as running:
            yield running

    def secret(self, server: Server, path: str) -> str:
        return server.add(path, b"ok", login="me:p@ss")

    def index_of(self, server: Server, path: str = "/simple/") -> str:
        return server.url.replace("://", "://me:p%40ss@") + path

    def test_of_the_index_for_all_of_its_host(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("UV_DEFAULT_INDEX", self.index_of(server))
        with session() as http:
            assert http.get(self.secret(server, "/files/a.whl")).content == b"ok"

    def test_for_no_other_host(self, server: Server, other: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("UV_DEFAULT_INDEX", self.index_of(server))
        with session() as http:
            assert http.get(self.secret(other, "/a")).status_code == 401
            server.add("/away", location=other.url + "/a")
            assert http.get(server.url + "/away").status_code == 401

    def test_after_a_redirect_to_the_index(
        self, server: Server, other: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("UV_DEFAULT_INDEX", self.index_of(server))
        other.add("/here", location=self.secret(server, "/a"))
        with session() as http:
            assert http.get(other.url + "/here").content == b"ok"

    def test_two_passwords_for_one_host(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        one = self.index_of(server, "/team/simple/")
        two = server.url.replace("://", "://you:other@") + "/public/simple/"
        monkeypatch.setenv("UV_INDEX", f"{two} {one}")
        server.add("/public/a", b"ok", login="you:other")
        with session() as http:
            assert http.get(self.secret(server, "/team/a")).content == b"ok"
            assert http.get(server.url + "/public/a").content == b"ok"

    def test_of_the_address_itself(self, server: Server) -> None:
        address = self.secret(server, "/a").replace("://", "://me:p%40ss@")
        with session() as http:
            assert http.get(address).content == b"ok"

    def test_of_netrc(self, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        netrc = tmp_path / "netrc"
        netrc.write_text("machine 127.0.0.1 login me password p@ss\n")
        monkeypatch.setenv("NETRC", str(netrc))
        with session() as http:
            assert http.get(self.secret(server, "/a")).content == b"ok"


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


class TestScrub:
    @pytest.mark.parametrize(
        ("text", "clean"),
        [
            ("see https://me:word@h.example/a and http://tok@i.example", "see https://h.example/a and http://i.example"),
            ("'https://me:p@ss@h.example'", "'https://h.example'"),
            ("a@b.example, https://h.example/@scope", "a@b.example, https://h.example/@scope"),
        ],
    )  # fmt: skip
    def test_addresses(self, text: str, clean: str) -> None:
        assert scrub(text) == clean

    def test_known_secrets_wherever_they_stand(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("UV_INDEX", "https://longtoken@a.example/ https://me:p%40ssword@b.example/")
        monkeypatch.setenv("https_proxy", "http://me:proxyword@c.example")
        monkeypatch.setenv("UV_INDEX_CORP_PASSWORD", "another")
        text = "longtoken p@ssword p%40ssword proxyword another me"
        assert scrub(text) == "*** *** *** *** *** me"

    def test_short_words_do_not_eat_the_text(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("UV_INDEX", "https://a:a@h.example/")
        assert scrub("a cat") == "a cat"

    def test_arguments_of_processes_in_the_log(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        process.run(["true", "https://me:word@h.example/"])
        assert "run: true https://h.example/" in caplog.text

    def test_filter(self) -> None:
        record = logging.LogRecord("x", 10, "f", 1, "at %s", ("http://a:b@h.example",), None)
        assert ScrubFilter().filter(record)
        assert record.getMessage() == "at http://h.example"


def test_without_credentials() -> None:
    url = "https://me:p%40ss@h.example:8443/a%2Bb.whl?x=1#sha256=0"
    assert without_credentials(url) == "https://h.example:8443/a%2Bb.whl?x=1"
