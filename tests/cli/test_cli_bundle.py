"""``bundle`` and ``image --bundle``: what they say, and what they refuse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reprobuild.bundle.rehearse import Built
from reprobuild.cli import bundle as module
from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.pipeline import steps
from support.bundles import small_bundle, small_files, small_locks
from support.fixtures import fixtures_of

if TYPE_CHECKING:
    from support.commands import Call  # pytest itself imports the plugin

pytest_plugins = ["support.commands", "support.small_images"]
globals().update(fixtures_of("support.bundles"))


@pytest.fixture
def locks(folder: Path) -> list[str]:
    for name, platforms in small_locks().items():
        Path(name).write_text(platforms[0].dump())
    return list(small_locks())


def test_a_bundle_is_written_and_an_image_is_made_of_it(
    host: Host, locks: list[str], call: Call, container: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for data in small_files():
        Store(Home.from_environment()).add_document(data)
    said = call("bundle", *locks, "-o", "a.tar", "--json")
    assert said.status == 0
    told = json.loads(said.out)
    assert (told["file"], told["size"]) == ("a.tar", Path("a.tar").stat().st_size)
    monkeypatch.setattr(steps, "facts_of_wheels", lambda *_: {})  # these are not wheels
    monkeypatch.setenv("REPROBUILD_HOME", str(tmp_path / "other"))
    assert call("image", "--bundle", "a.tar").status == 4
    said = call("image", "--bundle", "a.tar", "frames", "--json")
    assert said.status == 0
    digest = json.loads(said.out)["digest"]
    assert set(Store(Home(tmp_path / "other")).sizes().values()) == {len(data) for data in small_files()}
    said = call("image", "pylock.frames.toml", "--bundle", "a.tar", "--json")
    assert json.loads(said.out)["digest"] == digest
    Path("envs").mkdir()
    Path("envs/own.toml").write_text('cuda = "12.1"\n')
    said = call(
        "image", "envs/own.toml", "--bundle", "a.tar"
    )  # which has no lock, and gets none from a network
    assert (said.status, "envs/pylock.own.toml" in said.err) == (4, True)
    said = call("image", "--bundle", "a.tar", "--cuda", "12.1")
    assert (said.status, "--bundle has locks in it: leave --cuda out" in said.err) == (2, True)
    said = call("image", "--bundle", "a.tar", "--layers-from", "registry.example/x")
    assert said.status == 2


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("a.toml",),
        ("--check", "x", "-o", "y"),
        ("a.toml", "--check", "x"),
        ("-o", "y"),
        ("--check", "x", "--mirror", "x", "y"),
        ("a.toml", "--mirror", "x", "y"),
    ],
)
def test_a_call_that_says_neither_is_refused(argv: tuple[str, ...], call: Call) -> None:
    said = call("bundle", *argv)
    assert said.status == 2
    assert "give locks and -o FILE to write a bundle, --check FILE, or --mirror FILE FOLDER" in said.err


def test_a_mirror_says_what_is_in_it(host: Host, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    small_bundle(host, Path("a.tar"))
    monkeypatch.setattr("reprobuild.bundle.mirror.archive_entry", lambda package, store: package.filename)
    said = call("bundle", "--mirror", "a.tar", "mirror", "--json")
    told = {"mirror": "mirror", "python": 4, "debian": {"bookworm": 2}, "left_out": []}
    assert (said.status, json.loads(said.out)) == (0, told)
    said = call("bundle", "--mirror", "a.tar", "other")
    assert "4 files in other/simple" in " ".join(said.out.split())
    assert "2 packages in other/debian/bookworm" in " ".join(said.out.split())
    said = call("bundle", "--mirror", "a.tar", "other")
    assert (said.status, "other already exists" in said.err) == (11, True)


def test_a_check_compares_with_the_image_here(
    host: Host, small_digest: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_bundle(host, Path("a.tar"))
    lock = json.loads(call("images", "--json").out)[0]["labels"]["dev.reprobuild.lock"]
    digests = [small_digest]

    def rehearse(head: object, host: object) -> Iterator[Built]:
        yield from (Built(name="cpu", lock=lock, digest=digest) for digest in digests)

    monkeypatch.setattr(module, "rehearse", rehearse)
    said = call("bundle", "--check", "a.tar")
    assert said.status == 0
    assert "a.tar suffices for 1 of 2 locks" in said.out
    assert "frames not built: not for this machine" in " ".join(said.out.split())
    assert f"{small_digest}, as here" in " ".join(said.out.split())
    digests[0] = "sha256:" + "0" * 64
    said = call("bundle", "--check", "a.tar")
    assert said.status == 13
    assert f"the image of that lock here is {small_digest}" in said.err
    digests.clear()
    said = call("bundle", "--check", "a.tar")
    assert (said.status, "suffices" in said.out) == (8, False), said.err
    assert "nothing in it is for this machine, so nothing was built and nothing is proven" in said.err
