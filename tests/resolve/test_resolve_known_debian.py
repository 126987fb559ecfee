"""apt is asked again only once an archive, its keyring or the request has changed."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reprobuild.errors import ResolveError
from reprobuild.fetch.debian_mirrors import mirrors
from reprobuild.host.host import Host
from reprobuild.host.machine import architecture
from reprobuild.resolve import known_debian as module
from reprobuild.resolve.debian import DebianRequest, resolve_debian_state
from reprobuild.resolve.known_debian import resolve_debian_unless_known
from support.apt_archive import BASE, World, versions
from support.bundles import host_in

pytest_plugins = ["support.apt_archive"]

WANTED = DebianRequest(suite="bookworm", architecture=architecture(), python="3.11", apt=())


class Asked:
    """The requests for which apt is asked."""

    def __init__(self, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
        self.host, self.count = host, 0

        def counted(*given: object, **named: object) -> object:
            self.count += 1
            return resolve_debian_state(*given, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(module, "resolve_debian_state", counted)

    def resolve(self, wanted: DebianRequest = WANTED) -> dict[str, str]:
        return versions({package.name: package for package in resolve_debian_unless_known(wanted, self.host)})


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(host_in(tmp_path / "home"), monkeypatch)


def test_the_same_state_of_the_archives_has_the_same_answer(world: World, asked: Asked) -> None:
    first = resolve_debian_unless_known(WANTED, asked.host)
    assert resolve_debian_unless_known(WANTED, asked.host) == first
    assert {package.name for package in first} == set(BASE)
    assert asked.count == 1
    assert "git" in asked.resolve(replace(WANTED, apt=("git",)))
    assert asked.count == 2


def test_an_update_of_one_archive_is_seen(world: World, asked: Asked) -> None:
    assert asked.resolve() == BASE
    world.security.add("openssl", "3.0.99")
    world.publish()
    assert asked.resolve() == {**BASE, "openssl": "3.0.99"}
    assert asked.count == 2


def test_an_archive_that_nobody_trusts_any_more_is_refused(
    world: World, asked: Asked, keys: tuple[object, object]
) -> None:
    asked.resolve()
    world.main.publish(keys[1])  # type: ignore[arg-type]
    with pytest.raises(ResolveError, match="signature of Debian bookworm could not be verified"):
        asked.resolve()


def test_a_list_that_has_expired_is_judged_by_apt(
    world: World, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked.resolve()

    class Clock(datetime):
        now_is = datetime(2001, 1, 1, tzinfo=UTC)

        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return cls.now_is

    monkeypatch.setattr(module, "datetime", Clock)
    asked.resolve()
    assert asked.count == 2


@pytest.mark.parametrize("damage", [b"", b"{}", b"\0" * 99])
def test_a_damaged_record_is_none(damage: bytes, world: World, asked: Asked) -> None:
    assert asked.resolve() == BASE
    (record,) = (asked.host.home.root / "resolved").iterdir()
    record.write_bytes(damage)
    assert asked.resolve() == BASE
    assert asked.count == 2


def test_the_name_of_a_record_depends_on_the_keyring(world: World, tmp_path: Path) -> None:
    keyring = tmp_path / "keyring.gpg"
    keyring.write_bytes(b"one")
    served = {
        key: [replace(mirror, signed_by=str(keyring)) for mirror in found]
        for key, found in mirrors("bookworm").items()
    }
    before = module._name(WANTED, served)
    assert module._name(WANTED, served) == before
    os.utime(keyring, ns=(1, 1))
    assert module._name(WANTED, served) != before
