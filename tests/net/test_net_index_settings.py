"""Settings that cannot be read; what good ones do is tested where they are used."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.errors import HostError
from reprobuild.net.index_settings import find_links, indexes, proxy_environment, unread_rules
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


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, {}),
        ({"HTTPS_PROXY": "http://p.example:1"}, {"https_proxy": "http://p.example:1"}),
        ({"https_proxy": "p.example:1", "HTTPS_PROXY": "x"}, {"https_proxy": "http://p.example:1"}),
        ({"NO_PROXY": "a.example,b.example"}, {"no_proxy": "a.example,b.example"}),
        (
            {"all_proxy": "socks5://p.example:1", "http_proxy": "http://q.example"},
            {"https_proxy": "socks5h://p.example:1", "http_proxy": "http://q.example"},
        ),
    ],
)
def test_apt_and_git_get_the_proxies_in_lower_case(
    given: dict[str, str], found: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert proxy_environment() == found


def test_rules_for_versions_of_this_machine_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "pip.conf"
    settings.write_text("[global]\nconstraint = caps.txt\n[install]\npre = true\n")
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", str(settings))
    monkeypatch.setenv("UV_EXCLUDE_NEWER", "2026-01-01")
    assert unread_rules() == ("UV_EXCLUDE_NEWER", "pip's constraint", "pip's pre")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://index.example/simple")
    assert unread_rules() == ("UV_EXCLUDE_NEWER",)
