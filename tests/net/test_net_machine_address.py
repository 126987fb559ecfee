from __future__ import annotations

import pytest

from reprobuild.net.machine_address import is_here, is_loopback, is_on_link


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost", "127.1", "2130706433", "::1"])
def test_this_machine(host: str) -> None:
    assert is_here(host)
    assert not is_on_link(host)


@pytest.mark.parametrize("host", ["169.254.169.254", "fe80::1%eth0", "0.0.0.0", "::ffff:a9fe:a9fe"])
def test_its_link_and_what_is_written_in_another_way(host: str) -> None:
    assert is_here(host)
    assert is_on_link(host)
    assert not is_loopback(host)


@pytest.mark.parametrize("host", ["index.example", "10.0.0.5", "fd00::5", "", None, "localhosts"])
def test_any_other(host: str | None) -> None:
    """Private addresses too: indexes of teams are there."""
    assert not is_here(host)
