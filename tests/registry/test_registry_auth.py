from __future__ import annotations

import pytest
import requests
from requests.auth import HTTPBasicAuth

from reprobuild.registry.auth import OnlyAt


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
