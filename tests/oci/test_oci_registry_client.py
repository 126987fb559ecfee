"""What a registry that means harm, or is ill, can do: each answer is real, over a loopback connection."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme

from reprobuild.errors import RegistryError
from reprobuild.net import session as net_session
from reprobuild.net import transport
from support.fixtures import fixtures_of
from support.ill_registry import BUSY, CONFIG, DIGEST, answering, registry
from support.scripted import Answer, Asked, serve_answers

globals().update(fixtures_of("support.ill_registry"))

LOGIN = "Basic " + base64.b64encode("team:pässwörd".encode()).decode()
BLOB = f"/v2/team/x/blobs/{DIGEST}"


def keep_login(file: Path, host: str, entry: dict[str, str] | None = None) -> None:
    file.write_text(json.dumps({"auths": {host: entry or {"auth": LOGIN.removeprefix("Basic ")}}}))


class TestWhereLoginsGo:
    def test_not_to_the_same_host_and_port_without_tls(self, logins: Path, tmp_path: Path) -> None:
        """A redirect of a blob from https to http got the password in clear."""
        authority = trustme.CA()

        def answer(asked: Asked) -> Answer:
            if asked.path == "/v2/" and not asked.tls:
                return Answer(400)  # as a server does that speaks TLS alone
            if asked.path == "/v2/" or (asked.login is None and asked.tls):
                return Answer(200 if asked.login else 401, headers={"WWW-Authenticate": 'Basic realm="x"'})
            if asked.tls and asked.method == "GET":
                return Answer(307, headers={"Location": f"http://{served.host}{asked.path}"})
            return Answer(200, CONFIG)

        with serve_answers(answer, certificate=authority.issue_cert("127.0.0.1")) as served:
            (tmp_path / "docker" / served.host).mkdir(parents=True)
            authority.cert_pem.write_to_path(str(tmp_path / "docker" / served.host / "ca.crt"))
            keep_login(logins, served.host)
            http, url = registry(served).reader(DIGEST)
            assert http.get(url).content == CONFIG
        assert {asked.login for asked in served.log if asked.tls} >= {LOGIN}
        assert {asked.login for asked in served.log if not asked.tls} == {None}

    def test_a_token_server_without_tls_on_another_host_gets_nothing(self, logins: Path) -> None:
        challenge = {"WWW-Authenticate": 'Bearer realm="http://tokens.example/token",service="x"'}
        with answering({"root": Answer(401, headers=challenge)}) as served:
            keep_login(logins, served.host)
            with pytest.raises(RegistryError, match=r"send its login to http://tokens\.example, without TLS"):
                registry(served)

    @pytest.mark.parametrize("realm", ["", "ftp://h/", "http://[bad", "/token", "file:///etc/passwd"])
    def test_a_token_server_that_is_none(self, logins: Path, realm: str) -> None:
        with answering(
            {"root": Answer(401, headers={"WWW-Authenticate": f'Bearer realm="{realm}"'})}
        ) as served:
            keep_login(logins, served.host)
            with pytest.raises(RegistryError, match="names no valid token server"):
                registry(served)

    def test_a_host_that_blobs_are_redirected_to_cannot_ask_for_it(self, logins: Path) -> None:
        def elsewhere(asked: Asked) -> Answer:
            if asked.path.startswith("/token"):
                return Answer.json({"token": "x"})
            return Answer(401, headers={"WWW-Authenticate": f'Bearer realm="http://{other.host}/token"'})

        with serve_answers(elsewhere) as other:
            place = {"Location": f"http://{other.host}/blob"}
            with answering({f"GET {BLOB}": Answer(307, headers=place)}) as served:
                keep_login(logins, served.host)
                keep_netrc = logins.with_name("netrc")
                keep_netrc.write_text("machine 127.0.0.1 login a password b\n")
                with pytest.raises(RegistryError, match="401"):
                    registry(served).read_blob(DIGEST)
        assert [asked.path for asked in other.log] == ["/blob"]
        assert other.log[0].login is None

    def test_an_identity_token_does_not_follow_a_redirect(self, logins: Path) -> None:
        with answering({"POST /away": Answer.json({"token": "x"})}) as other:
            pages: dict[str, Answer | list[Answer]] = {
                "POST /token": Answer(307, headers={"Location": f"http://{other.host}/away"})
            }
            with answering(pages) as served:
                realm = f'Bearer realm="http://{served.host}/token"'
                pages["root"] = Answer(401, headers={"WWW-Authenticate": realm})
                keep_login(logins, served.host, {"identitytoken": "secret"})
                with pytest.raises(RegistryError, match=r"gives no token.*307"):
                    registry(served)
        assert other.log == []

    def test_a_token_that_ends_in_the_middle_of_a_download_is_renewed(self, logins: Path) -> None:
        tokens = itertools.count(1)

        def answer(asked: Asked) -> Answer:
            if asked.path.startswith("/token"):
                return Answer.json({"token": f"t{next(tokens)}"})
            if asked.method == "GET" and "blobs" in asked.path and asked.login != "Bearer t2":
                return Answer(401, headers=challenge)
            return Answer(200, CONFIG) if asked.login else Answer(401, headers=challenge)

        with serve_answers(answer) as served:
            challenge = {
                "WWW-Authenticate": f'Basic realm="b", Bearer realm="http://{served.host}/token",service="s"'
            }
            http, url = registry(served).reader(DIGEST)
            assert http.get(url).content == CONFIG
        assert [asked.path for asked in served.log].count("/v2/") == 3  # TLS is not tried; once, then with t1


class TestReading:
    @pytest.mark.parametrize(
        "ill",
        [
            BUSY,
            Answer(429, headers={"Retry-After": "0"}),
            Answer(drop=True),
            Answer(200, CONFIG, cut_at=10),
            Answer(200, pieces=[CONFIG[:10]]),
        ],
        ids=["503", "429", "dropped", "cut", "cut without a length"],
    )
    def test_a_blob_is_asked_for_again(self, ill: Answer) -> None:
        with answering({f"GET {BLOB}": [ill, ill, Answer(200, CONFIG)]}) as served:
            assert registry(served).read_blob(DIGEST) == CONFIG

    @pytest.mark.parametrize("ill", [BUSY, Answer(drop=True), Answer(200, CONFIG, cut_at=10)])
    def test_one_that_stays_ill_is_not_called_tampering(self, ill: Answer) -> None:
        with answering({f"GET {BLOB}": ill}) as served:
            with pytest.raises(RegistryError, match=f"^{served.host}.*(503|connection failed)") as error:
                registry(served).read_blob(DIGEST)
            assert "modified" not in error.value.hint
            assert [a.path for a in served.log].count(BLOB) == 5

    def test_other_bytes_are(self) -> None:
        with answering({f"GET {BLOB}": Answer(200, b"{}")}) as served:
            with pytest.raises(RegistryError, match="do not match the digest") as error:
                registry(served).read_blob(DIGEST)
            assert "may have modified them" in error.value.hint
            assert [a.path for a in served.log].count(BLOB) == 1

    @pytest.mark.parametrize("path", ["manifests/1", f"blobs/{DIGEST}"])
    def test_an_endless_document(self, path: str) -> None:
        page = {f"GET /v2/team/x/{path}": Answer(200, pieces=itertools.repeat(b" " * 65536))}
        with answering(page) as served:
            read = registry(served).read_blob if "blobs" in path else registry(served).read_manifest
            with pytest.raises(RegistryError, match="more than 4194304 bytes"):
                read(path.partition("/")[2])

    def test_one_that_inflates_to_gigabytes(self) -> None:
        bomb = Answer(200, gzip.compress(bytes(64 << 20)), {"Content-Encoding": "gzip"})
        with (
            answering({f"GET {BLOB}": bomb}) as served,
            pytest.raises(RegistryError, match="more than 4194304"),
        ):
            registry(served).read_blob(DIGEST)

    def test_an_endless_redirect_body(self) -> None:
        endless = Answer(302, headers={"Location": "/x"}, pieces=itertools.repeat(b" " * 65536))
        with answering({f"GET {BLOB}": endless}) as served, pytest.raises(RegistryError, match="more than"):
            registry(served).read_blob(DIGEST)

    @pytest.mark.parametrize("place", [BLOB, "http://[bad", "file:///etc/passwd", "http://a..b/"])
    def test_a_redirect_that_leads_nowhere(self, place: str) -> None:
        page = {f"GET {BLOB}": Answer(302, headers={"Location": place})}
        with answering(page) as served, pytest.raises(RegistryError, match=served.host):
            registry(served).read_blob(DIGEST)

    def test_a_peer_that_drips_is_given_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(transport, "WINDOW", 0.1)

        class Drip:
            def __iter__(self) -> Iterator[bytes]:
                while not served.ended.wait(0.01):
                    yield b" "

        pages: dict[str, Answer | list[Answer]] = {}
        with answering(pages) as served:
            pages[f"GET {BLOB}"] = Answer(200, pieces=Drip())
            with pytest.raises(RegistryError, match=r"connection failed: it gave no answer in time$"):
                registry(served).read_blob(DIGEST)
            assert [a.path for a in served.log].count(BLOB) <= 2  # a minute each

    def test_a_peer_that_hangs_up_is_described_in_words(self) -> None:
        with answering({f"GET {BLOB}": Answer(drop=True)}) as served:
            words = "(it was closed before an answer|connection reset by peer)"
            with pytest.raises(RegistryError, match=f"^{served.host}: the connection failed: {words}$"):
                registry(served).read_blob(DIGEST)

    def test_one_that_never_answers_is_given_up(self, monkeypatch: pytest.MonkeyPatch) -> None:

        def answer(asked: Asked) -> Answer:
            if asked.path == BLOB:
                served.ended.wait(60)
            return Answer()

        with serve_answers(answer) as served:
            target = registry(served)
            monkeypatch.setattr(net_session, "READ_TIMEOUT", 0.3)
            with pytest.raises(RegistryError, match=r"connection failed: it gave no answer in time$"):
                target.read_blob(DIGEST)
            assert [a.path for a in served.log].count(BLOB) <= 2

    @pytest.mark.parametrize("body", [b"[" * 100_000, b"\xff", b'{"errors": 5}', b'{"errors":[{"code":1}]}'])
    def test_what_an_error_says_may_be_rubbish(self, body: bytes) -> None:
        refused = pytest.raises(RegistryError, match=r"would not give .*: 403")
        with answering({f"GET {BLOB}": Answer(403, body)}) as served, refused:
            registry(served).read_blob(DIGEST)


class TestTokens:
    @pytest.mark.parametrize(
        "answer",
        [
            Answer(200, b"[" * 100_000),
            Answer(200, b"<html>"),
            Answer(200, b"[]"),
            Answer(200, b"{}"),
            Answer.json({"token": 5}),
            Answer.json({"token": "a\r\nHost: evil"}),
            Answer(500),
            Answer(403),
            Answer(302, headers={"Location": "/token"}),
            Answer(drop=True),
        ],
    )
    def test_a_token_server_that_is_ill(self, answer: Answer) -> None:
        pages: dict[str, Answer | list[Answer]] = {"GET /token": answer}
        with answering(pages) as served:
            realm = f'Bearer realm="http://{served.host}/token"'
            pages["root"] = Answer(401, headers={"WWW-Authenticate": realm})
            with pytest.raises(RegistryError, match=served.host):
                registry(served)

    def test_one_that_is_down(self) -> None:
        pages: dict[str, Answer | list[Answer]] = {
            "root": Answer(401, headers={"WWW-Authenticate": 'Bearer realm="http://127.0.0.1:9/token"'})
        }
        with answering(pages) as served, pytest.raises(RegistryError, match="connection failed"):
            registry(served)


def test_the_script_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in itself: what it is told to answer is what a plain client gets."""
    told: Callable[[Asked], Answer] = lambda asked: Answer(200, asked.path.encode())  # noqa: E731
    monkeypatch.delenv("REGISTRY_AUTH_FILE")
    with serve_answers(told) as served:
        import urllib.request

        assert urllib.request.urlopen(f"http://{served.host}/a", timeout=5).read() == b"/a"
