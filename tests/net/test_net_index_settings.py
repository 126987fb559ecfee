"""Settings that cannot be read; what good ones do is tested where they are used."""

from __future__ import annotations

import pytest

from reprobuild.errors import HostError
from reprobuild.net.index_settings import find_links, indexes
from reprobuild.net.scrubbing import scrub


@pytest.mark.parametrize("name", ["PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL", "UV_INDEX", "UV_DEFAULT_INDEX"])
def test_an_address_that_is_none(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was a traceback, also from `scrub`, through which every message passes."""
    for other in ("UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, "https://[x")
    with pytest.raises(HostError, match=r"an address of an index .* cannot be read: Invalid IPv6 URL"):
        indexes()
    assert scrub("a b") == "a b"


def test_a_page_of_wheels_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_FIND_LINKS", "https://[x")
    with pytest.raises(HostError, match="cannot be read: Invalid IPv6 URL"):
        find_links()
    assert scrub("a b") == "a b"
