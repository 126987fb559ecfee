from __future__ import annotations

import time
from pathlib import Path

import pytest
import requests
from requests.auth import HTTPBasicAuth

from reprobuild.errors import RegistryError
from reprobuild.oci.registry.auth import OnlyAt, ask_token, challenge
from support.proxy import serve_proxy
from support.scripted import Answer, Asked, serve_answers


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("https://r.example.org:5000/v2/x/blobs/1", True),
        ("https://R.example.org:5000/v2/x/blobs/1", True),
        ("http://r.example.org:5000/v2/x/blobs/1", False),
        ("https://r.example.org/v2/x/blobs/1", False),
        ("https://elsewhere.example.org/signed", False),
        ("https://r.example.org:5000@elsewhere.example.org/signed", False),
    ],
)
def test_a_password_goes_to_the_registry_alone(url: str, sent: bool) -> None:
    request = requests.Request(
        "GET", url, auth=OnlyAt("https://r.example.org:5000", HTTPBasicAuth("u", "p"))
    ).prepare()
    assert ("Authorization" in request.headers) is sent


@pytest.mark.parametrize(
    "host",
    [
        *("localhost:8443", "127.0.0.1", "[::1]", "169.254.169.254", "[fe80::1]", "0.0.0.0"),
        *("127.1", "2130706433", "0x7f.1", "0177.0.0.1", "localhost.", "127.0.0.1.", "LOCALHOST"),
        *("[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "\uff11\uff12\uff17.0.0.1", "169\u3002254.169.254"),
    ],
)
def test_a_registry_elsewhere_names_no_token_server_on_this_machine(host: str) -> None:
    fields = {"realm": f"https://{host}/token", "service": "x"}
    with pytest.raises(RegistryError, match="to this machine or its own link"):
        ask_token(requests.Session(), fields, "s", None, "https://r.example.org/v2/")


def test_a_token_server_s_redirect_reaches_nothing_on_this_machine(tmp_path: Path) -> None:
    """What a service here answered went on to the registry as the token."""

    def answer(asked: Asked) -> Answer:
        if asked.path.startswith("/token"):
            return Answer(302, headers={"Location": f"http://{served.host}/internal"})
        if asked.path.startswith("/moved"):
            return Answer(302, headers={"Location": "/other?x=1"})
        return Answer.json({"token": "t" if asked.path.startswith("/other") else "of-this-machine"})

    root, http = "https://r.example/v2/", requests.Session()
    with (
        serve_answers(answer) as served,
        serve_proxy(tmp_path, {"t.example": f"http://{served.host}"}) as proxy,
    ):
        http.trust_env, http.verify, http.proxies = False, str(proxy.ca), {"https": proxy.url}
        with pytest.raises(RegistryError, match="to this machine or its own link: http://127"):
            ask_token(http, {"realm": "https://t.example/token"}, "s", None, root)
        assert ask_token(http, {"realm": "https://t.example/moved"}, "s", None, root) == "t"
    assert not [asked for asked in served.log if asked.path == "/internal"]


def test_a_long_challenge_is_read_in_no_time() -> None:
    answer = requests.Response()
    answer.headers["WWW-Authenticate"] = "Bearer " + "a" * 60_000 + ',realm="https://tokens.example"'
    began = time.process_time()
    assert challenge(answer) == ("bearer", {"realm": "https://tokens.example"})
    assert time.process_time() - began < 2
