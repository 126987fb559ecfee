"""apt in a root of its own: mirrors, signatures, failures."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from reprobuild.errors import ResolveError, StorageError
from reprobuild.fetch import debian_mirrors
from reprobuild.host.machine import architecture as this_machine
from reprobuild.host.process import Completed, run
from reprobuild.resolve import apt
from support.apt_archive import BASE, World, versions
from support.debian_archive import DATE, Archive, Key
from support.disk import tiny_disk
from support.proxy import serve_proxy

pytest_plugins = ["support.apt_archive"]


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


@pytest.mark.parametrize("how", ["HTTPS_PROXY", "pip"])
def test_a_company_s_proxy_and_ca(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """apt itself reads no variables in capitals, no settings of pip, and no CA but those of the system."""
    sources = world.etc / "sources.list.d/debian.sources"
    with serve_proxy(tmp_path, {"mirror.example": world.main.server.url}, login="me:word") as proxy:
        sources.write_text(sources.read_text().replace(world.main.server.url, "https://mirror.example"))
        debian_mirrors._entries.cache_clear()
        proxy.trust(monkeypatch)
        if how == "pip":
            monkeypatch.delenv("SSL_CERT_FILE")
            (tmp_path / "pip.conf").write_text(f"[global]\nproxy = {proxy.url}\ncert = {proxy.ca}\n")
            monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
        else:
            monkeypatch.setenv(how, proxy.url)
        assert versions(world.resolve()) == BASE
        assert proxy.hosts == {"mirror.example"}
        world.set_apt(f'Acquire::https::Proxy "{proxy.url}";')
        monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
        assert versions(world.resolve()) == BASE  # apt's own settings go first


@pytest.mark.parametrize(
    ("date", "until"), [("Fri, 01 Jan 2100 00:00:00 UTC", ""), (DATE, "Sun, 02 Jun 2024 09:00:00 UTC")]
)
def test_an_index_of_another_time_may_be_the_clock_s_fault(world: World, date: str, until: str) -> None:
    world.main.publish(world.key, date=date, valid_until=until)
    with pytest.raises(ResolveError, match=r"index of Debian bookworm could not be read") as caught:
        world.resolve()
    assert caught.value.hint.startswith("check the clock of this machine, which says 20")


@pytest.mark.core
def test_a_full_folder_for_temporary_files_is_no_bad_signature(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To apt, which splits signed files in TMPDIR, they are not signed then."""
    with tiny_disk(tmp_path / "small", 64 << 10) as small:
        monkeypatch.setattr(tempfile, "tempdir", str(small))
        monkeypatch.setenv("TMPDIR", str(small))
        with pytest.raises(StorageError, match=rf"{small}.*: No space left on device") as full:
            world.resolve()
    assert "TMPDIR" in full.value.hint


def test_apt_s_own_user_may_write_to_the_folder_for_temporary_files(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else apt takes /tmp, and all is "not signed" where that is full."""
    modes = set()

    def seen(argv: Sequence[str], **settings: Any) -> Completed:
        modes.add(stat.S_IMODE(Path(settings["env"]["TMPDIR"]).stat().st_mode))
        return run(argv, **settings)

    monkeypatch.setattr(apt, "run", seen)
    world.resolve()
    assert modes == {0o1777}


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
