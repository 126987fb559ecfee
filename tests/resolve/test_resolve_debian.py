from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import needs
from reprobuild.errors import ResolveError
from reprobuild.host.console import Console
from reprobuild.host.machine import architecture as this_machine
from reprobuild.lock.model import DebianPackage
from reprobuild.net import debian_mirrors
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


def test_closure_without_recommended_ones(world: World) -> None:
    assert versions(world.resolve()) == BASE
    assert versions(world.resolve("git")) == dict(sorted({**BASE, "git": "1:2.39.5-0+deb12u1"}.items()))


class TestMergedUsr:
    """usr-is-merged, without Perl's modules, takes the place of usrmerge where nobody has asked for that."""

    @pytest.fixture(autouse=True)
    def _archive(self, world: World) -> None:
        world.main.add("init-system-helpers", "1.65", Essential="yes", Depends="usrmerge | usr-is-merged")
        world.main.add("usrmerge", "37", Depends="perl")
        world.main.add("usr-is-merged", "37", Conflicts="usrmerge")
        world.main.add("perl", "5.36")
        world.main.add("wants-usrmerge", "1", Depends="usrmerge")
        world.publish()

    def test_a_new_lock(self, world: World) -> None:
        more = {"init-system-helpers": "1.65", "usr-is-merged": "37"}
        assert versions(world.resolve()) == dict(sorted({**BASE, **more}.items()))

    @pytest.mark.parametrize("asked", ["usrmerge", "wants-usrmerge"])
    def test_who_needs_usrmerge_gets_it(self, asked: str, world: World) -> None:
        found = world.resolve(asked)
        assert "usrmerge" in found
        assert "usr-is-merged" not in found

    def test_an_earlier_lock_keeps_it(self, world: World) -> None:
        found = world.resolve("git", keep={"usrmerge": "37", "perl": "5.36"})
        assert "usrmerge" in found
        assert "usr-is-merged" not in found


def test_another_architecture_than_the_machine_s(world: World) -> None:
    here = this_machine()
    other = "arm64" if here == "amd64" else "amd64"
    world.main.machine = world.security.machine = other
    for archive in (world.main, world.security):
        archive.stanzas = [stanza.replace(here, other) for stanza in archive.stanzas]
    world.main.add("only-there", "1.0", Depends="libc6")
    world.publish()
    found = world.resolve("only-there", architecture=other)
    assert versions(found) == dict(sorted({**BASE, "only-there": "1.0"}.items()))
    assert {package.architecture for package in found.values()} == {other}
    with pytest.raises(ResolveError, match=f"main/binary-{here}/Packages|has no Python"):
        world.resolve(architecture=here)


def test_what_a_lock_needs(world: World) -> None:
    found = world.resolve("git")
    python = found["python3.11"]
    assert python.archive == "debian-security"
    assert python.path == "pool/updates/main/p/python3.11/python3.11_3.11.2-6+deb12u9_x.deb"
    assert python.sha256 == hashlib.sha256(python.path.encode()).hexdigest()
    assert python.size == len(python.path)
    git = found["git"]
    assert (git.archive, git.architecture) == ("debian", this_machine())
    assert git.path == f"pool/main/g/git/git_2.39.5-0+deb12u1_{git.architecture}.deb"


def test_a_file_that_both_archives_have_is_the_main_one_s(world: World) -> None:
    world.security.add("openssl", "3.0.11-1~deb12u2", path="pool/updates/main/o/openssl/o.deb")
    world.publish()
    first = world.resolve()
    world.sources(world.security, world.main)
    assert world.resolve() == first
    assert first["openssl"].archive == "debian"


def test_unknown_names(world: World) -> None:
    with pytest.raises(ResolveError, match="bookworm has no package gti") as caught:
        world.resolve("gti")
    assert "git" in caught.value.hint
    for name in ("git-", "git+", "lib.+", "awk"):
        with pytest.raises(ResolveError, match="has no package"):
            world.resolve(name)
    with pytest.raises(ResolveError, match=r"no Python 3\.12; it has 3\.11 and 3\.9"):
        world.resolve(python="3.12")


def test_packages_that_do_not_fit_together(world: World) -> None:
    world.main.add("broken", "1.0", Depends="not-there")
    world.publish()
    with pytest.raises(ResolveError, match=r"broken : Depends: not-there"):
        world.resolve("broken")


class TestKeep:
    def test_what_is_still_offered_stays(self, world: World) -> None:
        world.main.add("openssl", "3.0.99")
        world.publish()
        assert versions(world.resolve())["openssl"] == "3.0.99"
        kept = world.resolve(keep={"openssl": "3.0.11-1~deb12u2", "apt": "1.0"})
        assert versions(kept) == BASE
        old = {"python3.11": "3.11.2-6", "libpython3.11-stdlib": "3.11.2-6"}
        assert versions(world.resolve(keep=old)) == BASE | old | {"openssl": "3.0.99"}

    def test_what_does_not_fit_any_more_is_let_go(
        self, world: World, capsys: pytest.CaptureFixture[str]
    ) -> None:
        world.main.add("git", "1:2.50.0", Depends="libc6 (>= 2.37)")
        world.main.add("libc6", "2.37")
        world.publish()
        found = world.resolve("git", keep={"git": "1:2.50.0", "libc6": "2.36-9+deb12u10"})
        assert versions(found)["libc6"] == "2.37"
        assert "resolved again" in capsys.readouterr().err


class TestSignature:
    def test_none(self, world: World) -> None:
        world.main.server.pages.clear()
        world.main.publish(None)
        with pytest.raises(
            ResolveError, match=r"signature of Debian bookworm could not be verified(.|\n)*not signed"
        ):
            world.resolve()

    def test_of_another_key(self, world: World, keys: tuple[Key, Key]) -> None:
        world.security.publish(keys[1])
        with pytest.raises(ResolveError, match="could not be verified"):
            world.resolve()

    def test_of_other_bytes(self, world: World) -> None:
        page = world.main.server.pages["/debian/dists/bookworm/InRelease"]
        page.body = page.body.replace(b"Origin: Debian", b"Origin: debian")
        with pytest.raises(ResolveError, match="could not be verified"):
            world.resolve()

    def test_trusted_by_hand_is_not_enough(self, world: World) -> None:
        world.main.server.pages.clear()
        world.main.publish(None)
        (world.etc / "sources.list").write_text(f"deb [trusted=yes] {world.main.url} bookworm main\n")
        (world.etc / "sources.list.d" / "debian.sources").unlink()
        debian_mirrors._entries.cache_clear()
        with pytest.raises(ResolveError, match="could not be verified"):
            world.resolve()

    def test_index_that_is_not_the_signed_one(self, world: World) -> None:
        path = f"/debian/dists/bookworm/main/binary-{this_machine()}/Packages"
        page = world.main.server.pages[path]
        page.body = page.body.replace(b"12.4", b"66.6")
        with pytest.raises(ResolveError, match="could not be read"):
            world.resolve()


def test_mirror_that_fails(world: World) -> None:
    for page in world.main.server.pages.values():
        page.status = 500
    with pytest.raises(ResolveError, match="index of Debian bookworm could not be read") as caught:
        world.resolve()
    assert "REPROBUILD_DEBIAN_MIRROR" in caught.value.hint


def test_another_maker_s_bookworm_main_is_left_out(world: World) -> None:
    foreign = Archive(world.main.server, "/foreign", "bookworm", origin="Somebody")
    foreign.add("openssl", "99")
    foreign.publish(world.key)
    world.sources(foreign, world.main, world.security)
    assert versions(world.resolve()) == BASE
    world.sources(foreign)
    with pytest.raises(ResolveError, match="none of apt's sources of bookworm is a Debian archive"):
        world.resolve()


def test_without_security_updates(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.sources(world.main)
    assert versions(world.resolve())["python3.11"] == "3.11.2-6"
    assert "REPROBUILD_DEBIAN_SECURITY_MIRROR" in capsys.readouterr().err


def test_named_mirror_may_have_any_origin(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPROBUILD_DEBIAN_MIRROR", world.main.url)
    world.main.origin = "Our copy"
    world.main.stanzas += world.security.stanzas
    world.publish()
    # No bookworm-updates there: a variable stands for a whole mirror.
    with pytest.raises(ResolveError, match="bookworm-updates"):
        world.resolve()
    updates = Archive(world.main.server, "/debian", "bookworm-updates", origin="Our copy")
    updates.publish(world.key)
    assert versions(world.resolve()) == BASE


def test_the_host_s_pins_and_hooks_have_no_part(world: World, tmp_path: Path) -> None:
    (world.etc / "preferences").write_text("Package: *\nPin: version 3.11.2-6\nPin-Priority: 1001\n")
    with (tmp_path / "apt.conf").open("a") as config:
        config.write(
            f'APT::Update::Pre-Invoke {{ "touch {tmp_path}/ran"; }};\nAPT::Install-Recommends "true";\n'
        )
    assert versions(world.resolve()) == BASE
    assert not (tmp_path / "ran").exists()


def test_same_packages_whatever_the_surroundings(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    first = world.resolve("git")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LANGUAGE", "de")
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    before = os.umask(0o077)
    try:
        assert world.resolve("git") == first
    finally:
        os.umask(before)


def test_no_secret_in_an_error(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    main = world.main
    for page in main.server.pages.values():
        page.status = 500
    text = (world.etc / "sources.list.d" / "debian.sources").read_text()
    (world.etc / "sources.list.d" / "debian.sources").write_text(text.replace("//127", "//me:hunter2@127"))
    debian_mirrors._entries.cache_clear()
    with pytest.raises(ResolveError) as caught:
        world.resolve()
    assert "hunter2" not in caught.value.message + caplog.text


def test_temporary_folders_go_away(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr("tempfile.tempdir", folder)
        world.resolve()
        with pytest.raises(ResolveError):
            world.resolve("gti")
        assert not os.listdir(folder)  # noqa: PTH208 -- names are enough
