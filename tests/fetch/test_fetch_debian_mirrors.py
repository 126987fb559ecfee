from __future__ import annotations

from pathlib import Path

import pytest

from conftest import needs
from reprobuild.errors import HostError
from reprobuild.fetch import debian_mirrors as module
from reprobuild.fetch.debian_mirrors import Mirror, mirrors, package_urls
from reprobuild.lock.packages import DebianPackage

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Apt:
    """A folder of apt's, and the release that the host claims to be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.parts = folder / "sources.list.d"
        self.parts.mkdir()

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Apt:
    needs("apt-config")
    made = Apt(tmp_path)
    made.write("apt.conf", f'Dir::Etc "{tmp_path}"; Dir::Etc::parts "none"; Dir::Etc::main "none";')
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    monkeypatch.setattr(module, "_host_releases", lambda: {"stable", "bookworm"})
    monkeypatch.setattr(module, "keyring", lambda: KEYRING)
    return made


def package(archive: str = "debian", path: str = "pool/main/a/a_1+2~deb12u1_all.deb") -> DebianPackage:
    return DebianPackage(
        name="a", version="1", architecture="all", archive=archive, path=path, sha256="0" * 64, size=1
    )


def test_deb822(apt: Apt) -> None:
    apt.write(
        "sources.list.d/debian.sources",
        "# a comment\nTypes: deb deb-src\nURIs: http://m.example/debian/ http://n.example/debian\n"
        "Suites: bookworm-updates bookworm bookworm-backports\nComponents: main contrib\n"
        f"Signed-By: {KEYRING}\n\n"
        "Types: deb\nURIs: http://m.example/debian-security/\nSuites: bookworm-security\nComponents: main\n\n"
        "Types: deb\nURIs: http://off.example/debian\nSuites: bookworm\nComponents: main\nEnabled: no\n\n"
        "Types: deb-src\nURIs: http://src.example/debian\nSuites: bookworm\nComponents: main\n",
    )
    suites = ("bookworm", "bookworm-updates")
    assert mirrors("bookworm") == {
        "debian": (
            Mirror(url="http://m.example/debian", suites=suites, signed_by=KEYRING),
            Mirror(url="http://n.example/debian", suites=suites, signed_by=KEYRING),
        ),
        "debian-security": (Mirror(url="http://m.example/debian-security", suites=("bookworm-security",)),),
    }


def test_one_line_form(apt: Apt) -> None:
    apt.write(
        "sources.list",
        f"deb [arch=amd64 signed-by={KEYRING}] http://m.example/debian stable main non-free # why\n"
        "deb http://m.example/debian-security bookworm-security/ main\n"
        "# deb http://old.example/debian bookworm main\n"
        "deb cdrom:[Debian 12]/ bookworm main\nrubbish\n",
    )
    found = mirrors("bookworm")
    assert found["debian"] == (
        Mirror(url="http://m.example/debian", suites=("bookworm",), signed_by=KEYRING),
    )
    assert found["debian-security"][0].suites == ("bookworm-security",)


def test_other_makers_have_no_part(apt: Apt) -> None:
    apt.write("sources.list", "deb http://m.example/debian bookworm main\n")
    apt.write("sources.list.d/a.list", "deb https://sdk.example/apt cloud-sdk-bookworm main\n")
    apt.write("sources.list.d/b.list", "deb https://node.example/node_20.x nodistro main\n")
    apt.write("sources.list.d/c.list", "deb https://containers.example/debian bookworm stable\n")
    apt.write("sources.list.d/d.list.disabled", "deb http://disabled.example/debian bookworm main\n")
    assert [source.url for sources in mirrors("bookworm").values() for source in sources] == [
        "http://m.example/debian"
    ]


def test_another_release_from_the_same_mirrors(apt: Apt) -> None:
    apt.write(
        "sources.list",
        "deb http://m.example/debian bookworm main\ndeb http://m.example/debian bookworm-updates main\n"
        "deb http://s.example/security bookworm-security main\n",
    )
    found = mirrors("trixie")
    assert found["debian"] == (Mirror(url="http://m.example/debian", suites=("trixie", "trixie-updates")),)
    assert found["debian-security"][0].suites == ("trixie-security",)
    assert mirrors("sid") == {"debian": (Mirror(url="http://m.example/debian", suites=("sid",)),)}


def test_on_another_distribution_its_mirrors_do_not_count(apt: Apt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_host_releases", set)
    apt.write("sources.list", "deb http://u.example/ubuntu jammy main\n")
    with pytest.raises(HostError, match="no mirror of Debian bookworm") as caught:
        mirrors("bookworm")
    assert "REPROBUILD_DEBIAN_MIRROR" in caught.value.hint
    assert "REPROBUILD_DEBIAN_SECURITY_MIRROR" in caught.value.hint


def test_mirror_list(apt: Apt, tmp_path: Path) -> None:
    apt.write("mirrors", "http://m.example/debian\tpriority:1\n\nhttps://n.example/debian\n")
    apt.write("sources.list", f"deb mirror+file:{tmp_path}/mirrors bookworm main\n")
    assert package_urls("bookworm", package()) == (
        "http://m.example/debian/pool/main/a/a_1%2B2~deb12u1_all.deb",
        "https://n.example/debian/pool/main/a/a_1%2B2~deb12u1_all.deb",
    )


def test_variables_outrank_apt(apt: Apt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPROBUILD_DEBIAN_MIRROR", "https://mine.example/debian/")
    assert mirrors("trixie") == {
        "debian": (
            Mirror(
                url="https://mine.example/debian",
                suites=("trixie", "trixie-updates"),
                signed_by=KEYRING,
                named=True,
            ),
        )
    }
    with pytest.raises(HostError, match="debian-security") as caught:
        package_urls("trixie", package("debian-security"))
    assert "REPROBUILD_DEBIAN_SECURITY_MIRROR" in caught.value.hint
    monkeypatch.setenv("REPROBUILD_DEBIAN_SECURITY_MIRROR", "https://mine.example/security")
    urls = package_urls("trixie", package("debian-security", "pool/updates/a.deb"))
    assert urls == ("https://mine.example/security/pool/updates/a.deb",)


def test_without_apt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "which", lambda _: None)
    monkeypatch.setenv("APT_CONFIG", "a value of this test's own")
    with pytest.raises(HostError, match="no mirror of Debian bookworm"):
        mirrors("bookworm")
    monkeypatch.setenv("REPROBUILD_DEBIAN_MIRROR", "https://mine.example/debian")
    assert package_urls("bookworm", package())[0].startswith("https://mine.example/debian/pool/")


def test_broken_settings(apt: Apt) -> None:
    apt.write("apt.conf", "no { sense")
    with pytest.raises(HostError, match="apt's settings cannot be read"):
        mirrors("bookworm")
