"""``as-of`` for Debian packages: signed states of an archive, in the scheme of Debian's snapshots."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from conftest import needs
from reprobuild.errors import ResolveError
from reprobuild.fetch import debian_mirrors
from reprobuild.host.console import Console
from reprobuild.host.machine import architecture as this_machine
from reprobuild.resolve.debian import DebianRequest, resolve_debian
from reprobuild.resolve.resolver import Upgrade, resolve
from support.debian_archive import Archive, Key
from support.hosts import quiet_host
from support.index import Index
from support.resolving import LINUX, request
from support.server import Server, serve

pytest_plugins = ["support.family"]

DAY = date(2024, 9, 15)


@pytest.fixture(scope="module")
def key() -> Iterator[Key]:
    for program in ("gpg", "gpgconf", "apt-get"):
        needs(program)
    with tempfile.TemporaryDirectory(prefix="gpg-") as folder:
        made = Key(Path(folder, "a"))
        yield made
        made.close()


def state(server: Server, key: Key, top: str, version: str, signed: str) -> None:
    """Serve both archives of a release below a folder, as they were at some time."""
    main = Archive(server, f"{top.format('debian')}", "bookworm")
    updates = Archive(server, main.root, "bookworm-updates")
    security = Archive(server, f"{top.format('debian-security')}", "bookworm-security")
    for name in ("apt", "base-files", "ca-certificates", "libc6", "python3.11"):
        numbered = f"2.36-{version}" if name == "libc6" else version
        main.add(name, numbered, Depends="libc6, base-files" if name == "apt" else "")
    security.add("libc6", f"2.36-{version}+deb12u1")
    for each in (main, updates, security):
        each.publish(key, date=signed, valid_until="Sun, 22 Sep 2024 09:00:00 UTC")


@pytest.fixture
def server(key: Key, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    etc = tmp_path / "etc"
    (etc / "sources.list.d").mkdir(parents=True)
    (tmp_path / "apt.conf").write_text(
        f'Dir::Etc "{etc}"; Dir::Etc::main "none"; Dir::Etc::parts "none"; Acquire::Check-Valid-Until "no";'
    )
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    with serve() as running:
        state(running, key, "/{}", "3.0", "Sat, 01 Nov 2025 09:00:00 UTC")
        for day, version in (("20240915", "2.0"), ("20240901", "1.0")):
            signed = f"{day[6:]} Sep 2024 00:00:00 UTC"
            state(running, key, f"/archive/{{}}/{day}T000000Z", version, signed)
        text = "".join(
            f"Types: deb\nURIs: {running.url}/{name}\nSuites: {suites}\nComponents: main\n"
            f"Signed-By:{key.signed_by}\n\n"
            for name, suites in (
                ("debian", "bookworm bookworm-updates"),
                ("debian-security", "bookworm-security"),
            )
        )
        (etc / "sources.list.d/debian.sources").write_text(text)
        debian_mirrors._entries.cache_clear()
        yield running


def versions(day: date | None, keep: dict[str, str] | None = None) -> dict[str, str]:
    wanted = DebianRequest(suite="bookworm", architecture=this_machine(), python="3.11", apt=(), as_of=day)
    found = resolve_debian(wanted, keep=keep or {}, console=Console(quiet=True))
    assert all(not package.path.startswith("/") for package in found)
    return {package.name: package.version for package in found}


def all_of(version: str) -> dict[str, str]:
    names = ("apt", "base-files", "ca-certificates", "python3.11")
    return {**dict.fromkeys(names, version), "libc6": f"2.36-{version}+deb12u1"}


def test_each_day_has_its_state(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert versions(None) == all_of("3.0")
    monkeypatch.setenv("REPROBUILD_SNAPSHOT", server.url + "/")
    # A state of the past is no longer valid, as it says itself, also where the host's apt wants that checked.
    settings = Path(os.environ["APT_CONFIG"])
    settings.write_text(settings.read_text().replace('Until "no"', 'Until "yes"'))
    assert versions(DAY) == all_of("2.0")
    assert versions(date(2024, 9, 1)) == all_of("1.0")
    # Pins that are younger go.
    assert versions(DAY, keep=all_of("3.0")) == all_of("2.0")


def test_two_locks_of_one_day_are_equal(
    server: Server, key: Key, family: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPROBUILD_SNAPSHOT", server.url)
    wanted = request(**{"as-of": DAY})
    for file in family.files:
        file.uploaded = "2024-09-14T00:00:00Z"

    def locked() -> str:
        return resolve(wanted, existing=None, upgrade=Upgrade(), host=quiet_host()).dump()

    first = locked()
    assert "2.36-2.0+deb12u1" in first
    # Time goes by: newer packages everywhere.
    family.add("numpy", "2.2.0", tag=LINUX, uploaded="2024-09-16T00:00:00Z")
    runtime = ["nvidia-cuda-runtime-cu12==12.1.105", "filelock"]
    family.add("torch", "2.4.9", tag=LINUX, requires=runtime, uploaded="2024-09-16T00:00:00Z")
    state(server, key, "/{}", "4.0", "Mon, 01 Dec 2025 09:00:00 UTC")
    state(server, key, "/archive/{}/20240916T000000Z", "2.5", "16 Sep 2024 00:00:00 UTC")
    assert locked() == first
    monkeypatch.delenv("REPROBUILD_SNAPSHOT")
    with pytest.raises(ResolveError, match="cannot be applied"):
        locked()


def test_a_state_that_another_has_signed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPROBUILD_SNAPSHOT", server.url)
    page = server.pages["/archive/debian/20240915T000000Z/dists/bookworm/InRelease"]
    page.body = page.body.replace(b"Label: Debian", b"Label: debian")
    with pytest.raises(ResolveError, match="signature of Debian bookworm could not be verified"):
        versions(DAY)


def test_a_day_that_the_snapshot_lacks(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPROBUILD_SNAPSHOT", server.url)
    with pytest.raises(ResolveError, match="snapshot server has no Debian bookworm for that day") as bad:
        versions(date(1990, 1, 1))
    assert "REPROBUILD_SNAPSHOT" in bad.value.hint


def test_without_a_snapshot_a_younger_mirror_is_refused(server: Server) -> None:
    with pytest.raises(ResolveError, match=r"as-of 2024-09-15 cannot be applied") as bad:
        versions(DAY)
    for name in ("Debian bookworm of 2025-11-01", "bookworm-updates", "bookworm-security"):
        assert name in bad.value.message
    assert "REPROBUILD_SNAPSHOT" in bad.value.hint


def test_a_mirror_that_has_stood_still_will_do(
    server: Server, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPROBUILD_DEBIAN_MIRROR", f"{server.url}/archive/debian/20240901T000000Z")
    with pytest.raises(ResolveError, match="have only Debian bookworm-security of 2025-11-01"):
        versions(DAY)
    security = f"{server.url}/archive/debian-security/20240901T000000Z"
    monkeypatch.setenv("REPROBUILD_DEBIAN_SECURITY_MIRROR", security)
    assert versions(DAY) == all_of("1.0")
    assert versions(date(2024, 9, 1)) == all_of("1.0")
