"""Folders of wheels."""

from __future__ import annotations

import pytest

from reprobuild.errors import FetchError, HostError
from reprobuild.net.index_settings import check_find_links
from reprobuild.net.local_files import check_address


@pytest.mark.parametrize("name", ["UV_FIND_LINKS", "PIP_FIND_LINKS"])
def test_a_folder_of_wheels_that_is_not_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in ("UV_FIND_LINKS", "PIP_FIND_LINKS", "UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, "/nowhere/wheels")
    with pytest.raises(HostError, match=f"^{name} names /nowhere/wheels, which does not exist"):
        check_find_links()


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Those of a user with an index elsewhere."""
    for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://index.example/simple")
    return monkeypatch


ON_LINK = (
    "169.254.169.254",
    "169.254.169.254:80",
    "[fe80::1]",
    "[::ffff:a9fe:a9fe]",
    "2852039166",
    "0.0.0.0",
)


@pytest.mark.parametrize("host", ON_LINK)
def test_a_lock_reaches_no_server_on_the_link_that_no_setting_names(
    host: str, settings: pytest.MonkeyPatch
) -> None:
    url = f"http://{host}/latest/x-1-py3-none-any.whl"
    with pytest.raises(FetchError, match="but none of your settings names it"):
        check_address(url)
    settings.setenv("UV_DEFAULT_INDEX", f"http://{host}/simple")
    check_address(url)
    with pytest.raises(FetchError, match="but none of your settings names it"):
        check_address(url.replace("http:", "https:"))


@pytest.mark.usefixtures("settings")
def test_a_private_server_and_one_on_this_machine_need_no_setting() -> None:
    for host in ("files.example", "10.0.0.5", "[fd00::5]", "127.0.0.1:3141", "localhost"):
        check_address(f"https://{host}/x-1-py3-none-any.whl")
