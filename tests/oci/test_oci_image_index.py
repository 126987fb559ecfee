"""The index of the image store: damage, names, writers."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reprobuild.errors import ImageError, StorageError
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.oci.store import ImageStore
from support.disk import fill, make_unreadable, tiny_disk
from support.fixtures import fixtures_of
from support.small_store import CONSOLE, add

globals().update(fixtures_of("support.small_store"))


def test_the_start_of_two_digests_is_no_image(store: ImageStore) -> None:
    twins = ["sha256:" + "1234567" + digit * 57 for digit in "01"]
    (store.folder / "index.json").write_text(json.dumps({"manifests": [{"digest": each} for each in twins]}))
    with pytest.raises(ImageError, match="1234567 is the start of 2 digests") as caught:
        store.find("1234567")
    assert caught.value.hint == "give more digits"
    with pytest.raises(ImageError, match=f"{twins[0]}: it is missing"):
        store.find("12345670")


def test_an_image_is_found_without_reading_the_others(store: ImageStore) -> None:
    digest, other = add(store, 1), add(store, 2)
    store.name(digest, "team/a:1")
    store.blob(other).unlink()
    for reference in ("team/a:1", digest, digest[7:14]):
        assert store.find(reference).digest == digest
    with pytest.raises(ImageError, match="no image 'team/b:1'"):
        store.find("team/b:1")


def test_two_writers_lose_nothing(home: Home) -> None:
    with ThreadPoolExecutor(8) as pool:
        digests = list(pool.map(lambda epoch: add(ImageStore(Host(home, CONSOLE)), epoch), range(24)))
        for number, _ in enumerate(
            pool.map(lambda d: ImageStore(Host(home, CONSOLE)).name(d, f"a:{d[7:]}"), digests)
        ):
            assert number < 24
    assert {image.digest: image.names for image in ImageStore(Host(home, CONSOLE)).images()} == {
        digest: (f"a:{digest[7:]}",) for digest in digests
    }


def test_the_index_does_not_tell_in_which_order_it_was_made(tmp_path: Path) -> None:
    found = set()
    for number, order in enumerate(([1, 2, 3], [3, 1, 2])):
        store = ImageStore(Host(Home(tmp_path / str(number)), CONSOLE))
        for epoch in order:
            store.name(add(store, epoch), f"a:{epoch}")
        found.add((store.folder / "index.json").read_bytes())
    assert len(found) == 1


@pytest.mark.parametrize(
    "index",
    [
        b"",
        b"rubbish",
        b"[]",
        b"{}",
        b"null",
        b'{"manifests": 5}',
        b'{"manifests": [5]}',
        b'{"manifests": [{}]}',
        b'{"manifests": [{"digest": 5}]}',
        b'{"manifests": [{"digest": "../../x"}]}',
        b'{"manifests": [{"digest": "sha256:0"}]}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_a_damaged_index_is_read_from_its_copy_and_written_anew(
    store: ImageStore, index: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    digest = add(store, 1)
    store.name(digest, "a:1")
    good = (store.folder / "index.json").read_bytes()
    (store.folder / "index.json").write_bytes(index)
    assert store.find("a:1").digest == digest
    assert "index.json is damaged" in capsys.readouterr().err
    store.drop_unnamed()
    assert (store.folder / "index.json").read_bytes() == good


def test_a_changed_letter_of_a_name_does_not_count_and_is_a_warning(
    store: ImageStore, capsys: pytest.CaptureFixture[str]
) -> None:
    digest = add(store, 1)
    store.name(digest, "team/torch:1")
    index = store.folder / "index.json"
    good = index.read_text()
    assert [image.names for image in store.images()] == [("team/torch:1",)]
    assert not capsys.readouterr().err
    index.write_text(good.replace("team/torch:1", "team/porch:1"))
    assert [image.names for image in store.images()] == [("team/torch:1",)]
    assert "index.json was changed by another program: its copy" in capsys.readouterr().err


def test_a_writer_between_its_two_files_is_no_other_program(
    store: ImageStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = add(store, 1)
    store.name(digest, "a:1")
    old = (store.folder / "index.sealed").read_bytes()
    store.name(digest, "a:2")
    new = (store.folder / "index.sealed").read_bytes()
    (store.folder / "index.sealed").write_bytes(old)
    monkeypatch.setattr(time, "sleep", lambda _: (store.folder / "index.sealed").write_bytes(new))
    assert [image.names for image in store.images()] == [("a:1",)]
    assert not capsys.readouterr().err


def test_a_damaged_copy_of_the_index_is_no_matter(store: ImageStore) -> None:
    digest = add(store, 1)
    store.name(digest, "a:1")
    for harm in (b"", b"rubbish"):
        (store.folder / "index.sealed").write_bytes(harm)
        assert store.find("a:1").digest == digest
    (store.folder / "index.sealed").unlink()  # of an earlier version
    assert store.find("a:1").digest == digest


def test_images_that_lost_their_names_stay_until_they_are_named_or_removed(store: ImageStore) -> None:
    one, two = add(store, 1), add(store, 2)
    for digest in (one, two):
        store.name(digest, f"a:{digest[7:]}")
    for name in ("index.json", "index.sealed"):
        (store.folder / name).write_bytes(b"rubbish")
    assert store.drop_unnamed() == []
    assert [(image.digest, image.names, image.recovered) for image in store.images()] == [
        (digest, (), True) for digest in sorted((one, two))
    ]
    assert len(store.used_blobs()) == 4
    with pytest.raises(ImageError, match="no image"):
        store.find("")
    store.name(one, "b:1")
    assert [(y.digest, y.recovered) for y in store.images()] == [(one, False), (two, True)]
    store.remove(two)
    assert [image.names for image in store.images()] == [("b:1",)]
    store.reset()
    assert store.images() == []


@pytest.mark.parametrize("name", ["index.json", "index.sealed"])
def test_of_an_index_and_its_copy_the_disk_may_lose_one(
    store: ImageStore, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    digest = add(store, 1)
    store.name(digest, "a:1")
    make_unreadable(store.folder / name, monkeypatch)
    assert store.find("a:1").digest == digest
    store.name(digest, "b:1")
    assert store.find("b:1").digest == digest
    assert not (store.folder / name).is_symlink()


def test_an_index_that_the_disk_does_not_give_may_come_back(
    store: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.name(add(store, 1), "a:1")
    for name in ("index.json", "index.sealed"):
        make_unreadable(store.folder / name, monkeypatch)
    with pytest.raises(StorageError, match=r"index\.json: Input/output error"):
        store.images()


def test_an_index_that_cannot_be_replaced_is_named_and_no_image_loses_its_name(store: ImageStore) -> None:
    digest = add(store, 1)
    store.name(digest, "a:1")
    (store.folder / "index.json").unlink()
    # As one that is immutable, or a mount point: no rename replaces it.
    (store.folder / "index.json").mkdir()
    with pytest.raises(StorageError, match=r"oci/index\.json: Is a directory"):
        store.remove("a:1")
    assert [image.names for image in store.images()] == [("a:1",)]


@pytest.mark.parametrize("scarce", ["bytes", "inodes"])
def test_a_full_disk_lets_an_image_go_but_takes_no_name(tmp_path: Path, scarce: str) -> None:
    with tiny_disk(tmp_path / "full", 1 << 20) as disk:
        store = ImageStore(Host(Home(disk / "home"), CONSOLE))
        kept, other = add(store, 1), add(store, 2)
        store.name(kept, "a:1")
        store.name(other, "b:1")
        fill(disk, scarce)
        with pytest.raises(StorageError, match="No space left on device"):
            store.name(kept, "a:with-a-tag-that-makes-the-index-longer")
        assert [image.names for image in store.images()] == [("a:1",), ("b:1",)]
        store.remove(other)
        assert [image.names for image in store.images()] == [("a:1",)]
        for name in ("index.json", "index.sealed"):  # each says the same for itself
            (store.folder / name).rename(store.folder / "away")
            assert [image.names for image in store.images()] == [("a:1",)]
            (store.folder / "away").rename(store.folder / name)
