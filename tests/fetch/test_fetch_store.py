from __future__ import annotations

import errno
import hashlib
import os
import stat
from pathlib import Path

import pytest

from reprobuild.errors import StorageError
from reprobuild.fetch.store import Store
from reprobuild.host import verified
from reprobuild.host.home import Home

DATA = b"some bytes"
DIGEST = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(Home(tmp_path / "home"))


def add(store: Store, data: bytes = DATA) -> Path:
    digest = hashlib.sha256(data).hexdigest()
    with store.partial(digest) as partial:
        assert partial is not None
        partial.file.write(data)
        return store.add(digest, partial.path)


def files(store: Store) -> list[Path]:
    return [path for path in store.root.rglob("*") if path.is_file()]


def test_an_artifact_lies_under_its_hash_and_is_read_only(store: Store) -> None:
    path = add(store)
    assert store.root / "sha256" / DIGEST[:2] / DIGEST == path == store.path(DIGEST)
    assert stat.S_IMODE(path.stat().st_mode) == 0o444
    assert path.read_bytes() == DATA
    assert [path] == files(store)


def test_has_wants_the_size_too(store: Store) -> None:
    assert not store.has(DIGEST, len(DATA))
    add(store)
    assert store.has(DIGEST, len(DATA))
    assert not store.has(DIGEST, len(DATA) + 1)


def test_a_link_or_a_folder_is_no_artifact(store: Store, tmp_path: Path) -> None:
    add(store)
    other = tmp_path / "other"
    store.path(DIGEST).rename(other)
    store.path(DIGEST).symlink_to(other)
    assert not store.has(DIGEST, len(DATA))


def test_adding_again_is_harmless(store: Store) -> None:
    add(store)
    assert add(store).read_bytes() == DATA
    assert {DIGEST: len(DATA)} == store.sizes()


@pytest.mark.parametrize("name", ["", "../../etc/passwd", DIGEST.upper(), DIGEST + "\n", DIGEST[1:]])
def test_what_is_no_hash_has_no_path(store: Store, name: str) -> None:
    with pytest.raises(ValueError, match="is not a sha256"):
        store.path(name)


def test_a_partial_belongs_to_one_at_a_time(store: Store) -> None:
    with store.partial(DIGEST) as one:
        assert one is not None
        with store.partial(DIGEST) as two:
            assert two is None
    with store.partial(DIGEST) as three:
        assert three is not None


def test_a_partial_stays_to_be_gone_on_with_and_an_empty_one_goes(store: Store) -> None:
    with store.partial(DIGEST) as partial:
        assert partial is not None
        partial.file.write(DATA[:4])
    assert store.partial_size(DIGEST) == 4
    assert not store.has(DIGEST, 4)
    with store.partial(DIGEST) as partial:
        assert partial is not None
        assert DATA[:4] == partial.file.read()
        partial.discard()
    assert store.partial_size(DIGEST) == 0
    assert files(store) == []


def test_an_empty_artifact_is_not_taken_for_an_empty_partial(store: Store) -> None:
    path = add(store, b"")
    assert [path] == files(store)


def test_remove(store: Store) -> None:
    add(store)
    store.remove(DIGEST)
    store.remove(DIGEST)
    assert store.sizes() == {}


def test_sizes_counts_finished_artifacts_only(store: Store) -> None:
    add(store)
    with store.partial("0" * 64) as partial:
        assert partial is not None
        partial.file.write(b"half")
    (store.root / "sha256" / "ab").mkdir()
    (store.root / "sha256" / "ab" / "note.txt").write_text("not ours")
    assert {DIGEST: len(DATA)} == store.sizes()


def test_partials_are_removed_but_for_those_at_work(store: Store) -> None:
    for digest in ("0" * 64, "1" * 64):
        with store.partial(digest) as partial:
            assert partial is not None
            partial.file.write(b"half")
    with store.partial("0" * 64):
        assert store.remove_partials([]) == 4
    assert store.partial_size("0" * 64) == 4
    assert store.partial_size("1" * 64) == 0


def test_an_empty_store_can_be_asked(store: Store) -> None:
    assert store.sizes() == {}
    assert store.remove_partials([]) == 0
    store.remove(DIGEST)


def test_a_home_that_is_a_file_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    store = Store(Home(tmp_path / "home"))
    assert not store.has(DIGEST, 1)
    with pytest.raises(StorageError), store.partial(DIGEST):
        pass


@pytest.mark.parametrize("harm", ["flip", "cut", "empty", "longer"])
def test_a_damaged_artifact_is_named_removed_and_does_not_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], harm: str
) -> None:
    store = Store(Home(tmp_path / "home"))
    data = b"a wheel" * 100
    path = store.add_document(data)
    assert store.has(path.name, len(data))
    path.chmod(0o644)
    path.write_bytes({"flip": b"b" + data[1:], "cut": data[:-1], "empty": b"", "longer": data + b"x"}[harm])
    assert not store.has(path.name, len(data))
    assert not path.exists()
    assert str(path) in capsys.readouterr().err
    assert store.add_document(data) == path
    assert store.has(path.name, len(data))


def test_an_artifact_that_the_disk_does_not_give_is_fetched_again_and_may_come_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(path: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    path = add(store)
    os.utime(path, (0, 0))  # not verified, as after a boot
    with monkeypatch.context() as disk:
        disk.setattr(verified, "open_regular", lost)
        assert not store.has(DIGEST, len(DATA))
    assert store.has(DIGEST, len(DATA))
    assert path.read_bytes() == DATA
