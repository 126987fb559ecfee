"""The store of images: names and digests, what moves a name, what a damaged store says."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import needs
from reprobuild.errors import ImageError, StorageError
from reprobuild.host import process
from reprobuild.host.home import Home
from reprobuild.layers.image_documents import documents
from reprobuild.oci.store import ImageStore, image_name, lowest_below
from reprobuild.render.image_config import image_config
from support.disk import make_unreadable
from support.fixtures import fixtures_of
from support.locks import LOCK
from support.small_root import layer_of, small_image
from support.small_store import add

globals().update(fixtures_of("support.small_store"))


# --- names ---


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("torch", "torch:latest"),
        ("team/torch", "team/torch:latest"),
        ("team/torch:2.4.1-cu121", "team/torch:2.4.1-cu121"),
        ("registry.example:5000/team/torch", "registry.example:5000/team/torch:latest"),
        ("Registry.example/a/b/c:V1_x.y-z", "Registry.example/a/b/c:V1_x.y-z"),
        ("a__b/c.d/e---f", "a__b/c.d/e---f:latest"),
    ],
)
def test_a_name_gets_its_tag(text: str, name: str) -> None:
    assert image_name(text) == name


@pytest.mark.parametrize(
    "text",
    [*("", ":1", "a:", "Team", "a/B", "a//b", "/a", "a/", "a:1:2", "a b", "a\n", "a:1\n", "-a", "a-", "a..b"),
     *("a:.x", "a@sha256:0", "../a", "a:" + "x" * 129, "a/" * 127 + "aa", "é", "a:é", "https://a/b")],
)  # fmt: skip
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(ImageError, match="is not an image name") as caught:
        image_name(text)
    assert "team/torch:2.4.1-cu121" in caught.value.hint


@given(st.from_regex(r"[a-z0-9]{1,9}([._-][a-z0-9]{1,5}){0,2}(:[A-Za-z0-9_.-]{1,9})?", fullmatch=True))
def test_a_name_is_whole_or_refused(text: str) -> None:
    try:
        name = image_name(text)
    except ImageError:
        assert text.partition(":")[2][:1] in (".", "-")
        return
    assert name in (text, f"{text}:latest")
    assert image_name(name) == name


# --- images ---


def test_an_added_image_is_a_candidate(store: ImageStore) -> None:
    digest = add(store, 1)
    [image] = store.images()
    assert (image.digest, image.names) == (digest, ())
    manifest = json.loads(store.blob(digest).read_bytes())
    assert image.size == manifest["config"]["size"]
    assert image.labels["dev.reprobuild.epoch"] == "1"
    assert store.blob(digest).stat().st_mode & 0o777 == 0o444
    store.name(digest, "a:1")
    # Added again it is the same line, and keeps its name.
    assert add(store, 1) == digest
    index = json.loads((store.folder / "index.json").read_bytes())
    assert [entry["digest"] for entry in index["manifests"]] == [digest]
    assert store.find("a:1").digest == digest
    assert json.loads((store.folder / "oci-layout").read_bytes()) == {"imageLayoutVersion": "1.0.0"}


def test_the_size_is_that_of_the_layers_and_documents(home: Home, store: ImageStore) -> None:
    layer = layer_of(home, {"x": b"x" * 5000})
    digest = store.add(documents(LOCK, image_config(LOCK), [("x", layer)]))
    [image] = store.images()
    assert image.size == layer.size + store.manifest(digest)["config"]["size"]
    assert store.layers(digest) == [(store.blob(layer.digest), layer.diff_id)]


def test_a_name_moves_and_its_image_stays(store: ImageStore) -> None:
    old, new = add(store, 1), add(store, 2)
    store.name(old, "team/a:1")
    store.name(old, "team/b:1")
    assert store.find(old).names == ("team/a:1", "team/b:1")
    store.name(new, "team/a:1")
    assert {image.digest: image.names for image in store.images()} == {old: ("team/b:1",), new: ("team/a:1",)}
    store.name(new, "team/b:1")
    assert {image.digest: image.names for image in store.images()} == {
        old: (),
        new: ("team/a:1", "team/b:1"),
    }
    store.name(new, "team/b:1")
    assert store.find("team/b:1").digest == new


def test_images_with_names_come_first(store: ImageStore) -> None:
    digests = [add(store, epoch) for epoch in range(4)]
    store.name(digests[2], "b:1")
    store.name(digests[0], "c:1")
    assert [image.digest for image in store.images()] == [
        digests[2],
        digests[0],
        *sorted((digests[1], digests[3])),
    ]


def test_an_image_is_found_by_name_digest_and_its_start(store: ImageStore) -> None:
    digest, other = add(store, 1), add(store, 2)
    store.name(digest, "team/a:latest")
    for reference in ("team/a", "team/a:latest", digest, digest[7:], digest[7:14], digest[:14]):
        assert store.find(reference).digest == digest
    with pytest.raises(ImageError, match="no image 'team/a:2'") as caught:
        store.find("team/a:2")
    assert caught.value.hint == "there are: team/a:latest"
    for reference in ("../a", "./team/a"):
        with pytest.raises(ImageError) as caught:
            store.find(reference)
        assert caught.value.hint == "there are: team/a:latest"
    for reference in ("registry.example/team/a:1", "localhost:5000/a"):
        with pytest.raises(ImageError) as caught:
            store.find(reference)
        assert caught.value.hint.startswith("`docker pull` or `podman pull` fetches it from a registry")
    for reference in (digest[7:13], digest[7:].upper(), "0" * 64, "a", "latest"):
        with pytest.raises(ImageError, match="no image"):
            store.find(reference)
    assert store.find(other).names == ()


def test_a_name_that_looks_like_a_digest_is_a_name(store: ImageStore) -> None:
    digest = add(store, 1)
    store.name(digest, "deadbeef:latest")
    assert store.find("deadbeef").digest == digest


def test_remove_takes_a_name_or_an_image(store: ImageStore) -> None:
    digest, other = add(store, 1), add(store, 2)
    for name in ("a:1", "a:2"):
        store.name(digest, name)
    store.name(other, "b:latest")
    assert store.remove("a:1") == digest
    assert store.find(digest).names == ("a:2",)
    store.remove(digest[7:17])
    assert [image.digest for image in store.images()] == [other]
    store.remove("b")
    assert store.images() == []
    with pytest.raises(ImageError, match="no image 'b'"):
        store.remove("b")


def test_candidates_are_dropped_together(store: ImageStore) -> None:
    named, *candidates = (add(store, epoch) for epoch in range(3))
    store.name(named, "a:1")
    assert store.drop_unnamed() == sorted(candidates)
    assert [image.digest for image in store.images()] == [named]
    config = store.manifest(named)["config"]["digest"]
    assert store.used_blobs() == {named, config}
    assert store.drop_unnamed() == []


# --- damage ---


def test_a_damaged_image_is_no_obstacle_to_the_others(store: ImageStore) -> None:
    good, *bad = (add(store, epoch) for epoch in range(4))
    for digest in (good, *bad):
        store.name(digest, f"a:{digest[7:]}")
    for digest, harm in zip(bad, ("flip", "cut", "config"), strict=True):
        path = store.blob(store.manifest(digest)["config"]["digest"] if harm == "config" else digest)
        path.chmod(0o644)
        data = path.read_bytes()
        path.write_bytes(
            data[:-9] if harm == "cut" else data.replace(b"linux", b"linus").replace(b"schema", b"scheme")
        )
    assert [image.digest for image in store.images()] == [good]
    assert sorted(image.digest for image in store.damaged_images()) == sorted(bad)
    assert good in store.used_blobs()
    assert add(store, 1) == bad[0]
    assert len(store.images()) == 2
    for digest in bad[1:]:
        store.remove(f"a:{digest[7:]}")
    assert store.damaged_images() == []


def test_an_unreadable_image_is_no_obstacle_and_keeps_its_blobs(
    store: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = add(store, 1), add(store, 2)
    store.name(good, "a:1")
    store.name(bad, "a:2")
    make_unreadable(store.blob(bad), monkeypatch)
    assert [image.digest for image in store.images()] == [good]
    assert [(each.names, each.unreadable) for each in store.damaged_images()] == [(("a:2",), True)]
    with pytest.raises(StorageError, match="Input/output error") as refused:
        store.drop_blobs([])
    assert f"`reprobuild remove {bad[7:19]}`" in refused.value.hint
    store.remove(bad[7:19])
    assert store.drop_blobs([]) > 0


@pytest.mark.parametrize("what", ["manifest", "config"])
@pytest.mark.parametrize("harm", ["gone", "changed", "cut", "pipe"])
def test_damaged_documents_are_said(store: ImageStore, what: str, harm: str) -> None:
    digest = add(store, 1)
    hurt = digest if what == "manifest" else store.manifest(digest)["config"]["digest"]
    path = store.blob(hurt)
    data = path.read_bytes()
    path.unlink()
    if harm == "pipe":
        os.mkfifo(path)
    elif harm != "gone":
        path.write_bytes(data.replace(b"linux", b"linus") + b" " if harm == "changed" else data[:-1])
    with pytest.raises(ImageError, match=f"the image store is damaged: {hurt}"):
        store.config(digest)
    # Building it again mends it.
    assert add(store, 1) == digest
    assert store.config(digest)["os"] == "linux"


# --- others read it ---


@pytest.mark.engines
def test_skopeo_reads_the_store(home: Home, store: ImageStore) -> None:
    needs("skopeo")
    digest = small_image(home)
    store.name(digest, "team/small:1")
    store.name(add(store, 1), "team/other:1")
    asked = ["skopeo", "inspect", f"oci:{store.folder}:team/small:1"]
    facts = json.loads(process.run(asked).stdout)
    assert facts["Digest"] == digest
    assert facts["Labels"]["dev.reprobuild.torch"] == "2.4.1"
    assert facts["Layers"] == [layer["digest"] for layer in store.manifest(digest)["layers"]]
    assert f"OMP_NUM_THREADS={LOCK.variables['OMP_NUM_THREADS']}" in facts["Env"]


def test_the_image_that_one_starts_from_is_told_by_its_layers() -> None:
    others = {"self": "abcd", "team": "abc", "base": "ab", "other": "xb", "more": "abcde", "empty": ""}
    assert lowest_below("abcd", others) == "base"
    assert lowest_below("ab", {"self": "ab", "other": "b"}) is None
