"""Debian archives on loopback.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import needs
from reprobuild.fetch import debian_mirrors
from reprobuild.host.console import Console
from reprobuild.host.machine import architecture as this_machine
from reprobuild.lock.packages import DebianPackage
from reprobuild.resolve.debian import DebianRequest, resolve_debian
from support.debian_archive import Archive, Key
from support.server import serve


@pytest.fixture(scope="session")
def keys() -> Iterator[tuple[Key, Key]]:
    for program in ("gpg", "gpgconf", "apt-get"):
        needs(program)
    with tempfile.TemporaryDirectory(prefix="gpg-") as folder:
        made = Key(Path(folder, "a")), Key(Path(folder, "b"))
        yield made
        for key in made:
            key.close()


class World:
    """Two archives of Debian's, apt set up with them, and one key."""

    def __init__(self, main: Archive, security: Archive, key: Key, etc: Path) -> None:
        self.main, self.security, self.key, self.etc = main, security, key, etc
        self.console = Console(quiet=True)

    def publish(self) -> None:
        self.main.publish(self.key)
        self.security.publish(self.key)
        self.sources(self.main, self.security)

    def set_apt(self, settings: str) -> None:
        """Add settings to those of this machine's apt."""
        with (self.etc.parent / "apt.conf").open("a") as file:
            file.write(f"\n{settings}\n")

    def sources(self, *which: Archive) -> None:
        text = "\n".join(
            f"Types: deb\nURIs: {a.url}\nSuites: {a.suite}\nComponents: main\n"
            f"Signed-By:{self.key.signed_by}\n"
            for a in which
        )
        (self.etc / "sources.list.d" / "debian.sources").write_text(text)
        debian_mirrors._entries.cache_clear()

    def resolve(
        self,
        *apt: str,
        python: str = "3.11",
        keep: dict[str, str] | None = None,
        architecture: str | None = None,
    ) -> dict[str, DebianPackage]:
        machine = architecture or this_machine()
        wanted = DebianRequest(suite="bookworm", architecture=machine, python=python, apt=apt)
        found = resolve_debian(wanted, keep=keep or {}, console=self.console)
        assert len({package.name for package in found}) == len(found)
        return {package.name: package for package in found}


@pytest.fixture
def world(keys: tuple[Key, Key], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    etc = tmp_path / "etc"
    (etc / "sources.list.d").mkdir(parents=True)
    (tmp_path / "apt.conf").write_text(f'Dir::Etc "{etc}"; Dir::Etc::main "none"; Dir::Etc::parts "none";')
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    with serve() as server:
        main = Archive(server, "/debian", "bookworm")
        security = Archive(server, "/debian-security", "bookworm-security")
        main.add("libc6", "2.36-9+deb12u10", Multi_Arch="same")
        main.add("base-files", "12.4", Essential="yes", Pre_Depends="awk")
        main.add("bash", "5.2.15-2+b7", Essential="yes", Depends="libc6 (>= 2.36)", Recommends="nice-to-have")
        main.add("mawk", "1.3", Provides="awk", Depends="libc6")
        main.add("nice-to-have", "1.0")
        main.add("apt", "2.6.1", Depends="libc6")
        main.add("ca-certificates", "20230311", Depends="openssl")
        main.add("openssl", "3.0.11-1~deb12u2")
        main.add("python3.11", "3.11.2-6", Depends="libpython3.11-stdlib (= 3.11.2-6), libc6")
        main.add("libpython3.11-stdlib", "3.11.2-6")
        main.add("python3.9", "3.9.2")
        main.add("git", "1:2.39.5-0+deb12u1", Depends="libc6")
        update = "pool/updates/main/p/python3.11/"
        for name in ("python3.11", "libpython3.11-stdlib"):
            depends = "libpython3.11-stdlib (= 3.11.2-6+deb12u9)" if name == "python3.11" else "libc6"
            security.add(
                name, "3.11.2-6+deb12u9", path=f"{update}{name}_3.11.2-6+deb12u9_x.deb", Depends=depends
            )
        made = World(main, security, keys[0], etc)
        made.publish()
        yield made


BASE = {
    "apt": "2.6.1",
    "base-files": "12.4",
    "bash": "5.2.15-2+b7",
    "ca-certificates": "20230311",
    "libc6": "2.36-9+deb12u10",
    "libpython3.11-stdlib": "3.11.2-6+deb12u9",
    "mawk": "1.3",
    "openssl": "3.0.11-1~deb12u2",
    "python3.11": "3.11.2-6+deb12u9",
}


def versions(found: dict[str, DebianPackage]) -> dict[str, str]:
    return {name: package.version for name, package in sorted(found.items())}
