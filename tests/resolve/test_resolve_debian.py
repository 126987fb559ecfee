from __future__ import annotations

import os

import pytest

from reprobuild.errors import ResolveError
from support.apt_archive import BASE, World, versions

pytest_plugins = ["support.apt_archive"]


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
