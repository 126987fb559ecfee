"""Layers of a base image that are not what the lock says."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from reprobuild.errors import LockError, RegistryError
from reprobuild.fetch import base_layers
from reprobuild.fetch.base_layers import fetch_base
from reprobuild.fetch.store import Store
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.lock.base_image import BaseImage
from support.base_images import locked
from support.bases import Pusher, files
from support.fixtures import fixtures_of

pytest_plugins = ["support.family"]
globals().update(fixtures_of("support.base_images"))


CONSOLE = Console(quiet=True)


class TestForgedLock:
    """A lock in a pull request that keeps the trusted image's digest and says something else of it."""

    @pytest.fixture
    def base(self, team: Pusher) -> BaseImage:
        inner = team.image([files(), files({"etc/a": b"a"})], tag="inner", Env=["PATH=/usr/local/bin", "A=1"])
        team.index({"linux/amd64": inner})
        team.image([files({"etc/evil": b"x"})], tag="evil")
        return locked(f"{team.name}:1")

    def fetch(self, base: BaseImage, home: Path) -> None:
        fetch_base(base, "linux/amd64", Store(Home(home)), CONSOLE)

    @pytest.mark.parametrize(
        "what", ["layers", "fewer", "size", "diff-id", "config", "env", "manifest", "index"]
    )
    def test_it_is_refused(self, team: Pusher, base: BaseImage, tmp_path: Path, what: str) -> None:
        evil, digest = locked(f"{team.name}:evil"), "sha256:" + "a" * 64
        first, *others = base.layers
        forged = {
            "layers": replace(base, layers=evil.layers),
            "fewer": replace(base, layers=base.layers[:1]),
            "size": replace(base, layers=[replace(first, size=first.size + 1), *others]),
            "diff-id": replace(base, layers=[replace(first, diff_id=digest), *others]),
            "config": replace(base, config=evil.config),
            "env": replace(base, env={**base.env, "LD_PRELOAD": "/etc/evil"}),
            "manifest": replace(base, manifests=evil.manifests),
            "index": replace(base, index=base.config),
        }[what]
        expected = RegistryError if what == "index" else LockError
        with pytest.raises(expected) as caught:
            self.fetch(forged, tmp_path / "home")
        if what != "index":
            assert "the lock does not describe the image whose digest it names" in str(caught.value)
        # Nothing of it is fetched, and the honest lock is none the worse.
        store = Store(Home(tmp_path / "home"))
        assert not any(store.path(layer.sha256).exists() for layer in (*base.layers, *evil.layers))
        self.fetch(base, tmp_path / "home")

    def test_the_image_s_documents_are_kept(
        self, team: Pusher, base: BaseImage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.fetch(base, tmp_path / "home")
        monkeypatch.setattr(base_layers, "registry_of", None)  # there is no network
        self.fetch(base, tmp_path / "home")
        with pytest.raises(LockError):
            self.fetch(replace(base, layers=base.layers[:1]), tmp_path / "home")

    def test_documents_that_were_changed_on_the_disk_are_fetched_again(
        self, base: BaseImage, tmp_path: Path
    ) -> None:
        self.fetch(base, tmp_path / "home")
        path = Store(Home(tmp_path / "home")).path(base.config[7:])
        path.chmod(0o644)
        path.write_text("{}")
        self.fetch(base, tmp_path / "home")
        assert path.read_text() != "{}"

    def test_a_pipe_in_the_place_of_a_document_is_not_waited_for(
        self, base: BaseImage, tmp_path: Path
    ) -> None:
        self.fetch(base, tmp_path / "home")
        path = Store(Home(tmp_path / "home")).path(base.config[7:])
        good = path.read_bytes()
        path.unlink()
        os.mkfifo(path)
        self.fetch(base, tmp_path / "home")
        assert path.is_file()
        assert path.read_bytes() == good
