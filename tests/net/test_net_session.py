from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pypi_simple
import pytest
import requests

from reprobuild.errors import HostError
from reprobuild.net.index_settings import Indexes, indexes, uv_environment
from reprobuild.net.session import scrub, session, without_credentials
from support.fixtures import fixtures_of
from support.proxy import serve_proxy
from support.scripted import Answer, Asked, serve_answers
from support.server import Server, serve

globals().update(fixtures_of("support.net_servers"))


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


def test_without_credentials() -> None:
    url = "https://me:p%40ss@h.example:8443/a%2Bb.whl?x=1#sha256=0"
    assert without_credentials(url) == "https://h.example:8443/a%2Bb.whl?x=1"


def test_a_server_elsewhere_redirects_to_nothing_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(asked: Asked) -> Answer:
        moved = {
            "/in": f"http://{served.host}/internal",
            "/on": "/there",
            "/link": "http://169.254.169.254/latest",
        }
        found = moved.get(asked.path)
        return Answer(302, headers={"Location": found}) if found else Answer(200, b"it")

    with (
        serve_answers(answer) as served,
        serve_proxy(tmp_path, {"files.example": f"http://{served.host}"}) as proxy,
    ):
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        monkeypatch.setenv("SSL_CERT_FILE", str(proxy.ca))
        http = session(retries=0)
        for path in ("in", "link"):
            with pytest.raises(requests.exceptions.InvalidURL, match="this machine or its own link"):
                http.get(f"https://files.example/{path}")
        assert http.get("https://files.example/on").content == b"it"
    assert [asked.path for asked in served.log] == ["/in", "/link", "/on", "/there"]
