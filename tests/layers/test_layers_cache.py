"""Finished layers by key, and what is left of them on a bad day."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprobuild.host.home import Home
from reprobuild.host.verified import sealed
from reprobuild.layers.cache import Cached, LayerCache
from reprobuild.oci.blobs import Blobs
from reprobuild.oci.tar_writer import LayerWriter
from support.disk import make_unreadable

KEY = "k" * 64


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def put(home: Home, key: str = KEY, text: bytes = b"hello", artifacts: tuple[str, ...] = ("a",)) -> Cached:
    with home.scratch("test") as scratch:
        path = scratch / "blob"
        with path.open("wb") as out:
            writer = LayerWriter(out)
            writer.file("x", 0o644, len(text), [text])
            layer = writer.close()
        return LayerCache(home).put(key, path, Cached(layer, tuple(writer.records), artifacts))


def test_a_layer_comes_back_as_it_was_put(home: Home) -> None:
    cached = put(home)
    cache = LayerCache(home)
    assert cache.get(KEY) == cached
    blob = cache.blob(cached.layer.digest)
    assert (blob.stat().st_mode & 0o777, blob.stat().st_size) == (0o444, cached.layer.size)
    assert cache.get("other") is None


def test_a_blob_that_is_cut_or_gone_does_not_count(home: Home) -> None:
    cached = put(home)
    blob = LayerCache(home).blob(cached.layer.digest)
    data = blob.read_bytes()
    blob.chmod(0o644)
    blob.write_bytes(data[:-1])
    assert LayerCache(home).get(KEY) is None
    assert not blob.exists()
    assert LayerCache(home).get(KEY) is None
    assert put(home) == cached == LayerCache(home).get(KEY)


def garbage() -> st.SearchStrategy[bytes]:
    values = st.recursive(
        st.none() | st.integers() | st.text(max_size=3) | st.booleans(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["layer", "records", "artifacts", "digest", "size"]), inner)
        ),
    )
    layer = st.fixed_dictionaries({"diff_id": values, "digest": values, "size": values, "unpacked": values})
    table = st.fixed_dictionaries({"layer": layer, "records": values, "artifacts": values})
    return (values | table).map(lambda value: json.dumps(value).encode()) | st.binary(max_size=20)


@given(garbage())
def test_garbage_does_not_count(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    home = Home(tmp_path_factory.mktemp("home"))
    cache = LayerCache(home)
    (home.folder("layers") / f"{KEY}.json").write_bytes(sealed(KEY, data))
    assert cache.get(KEY) is None


def test_a_list_of_paths_that_is_cut_does_not_count(home: Home) -> None:
    put(home)
    path = home.folder("layers") / f"{KEY}.json"
    path.write_bytes(path.read_bytes()[:-3])
    assert LayerCache(home).get(KEY) is None


def test_what_no_image_needs_is_forgotten_and_no_blob_is_touched(home: Home) -> None:
    """The image store owns the blobs: it alone knows which are manifests and configurations."""
    kept = put(home, "kept", b"kept", ("one", "two"))
    put(home, "gone", b"gone", ("three",))
    cache = LayerCache(home)
    manifest = Blobs(home).path("sha256:" + "0" * 64)
    manifest.write_bytes(b"{}")
    before = sorted(Blobs(home).folder.iterdir())
    size = (home.folder("layers") / "gone.json").stat().st_size
    assert cache.forget_all_but({kept.layer.digest}, []) == ({"one", "two"}, size)
    assert cache.get("kept") == kept
    assert cache.get("gone") is None
    assert sorted(Blobs(home).folder.iterdir()) == before
    assert [path.name for path in home.folder("layers").iterdir()] == ["kept.json"]


def test_a_plan_is_known_as_long_as_all_of_its_layers_are_there(home: Home) -> None:
    first, second = put(home, "1" * 64), put(home, "2" * 64, b"other")
    cache = LayerCache(home)
    assert cache.known("p") is None
    cache.remember("p", ["1" * 64, "2" * 64])
    assert cache.known("p") == [first, second]
    cache.forget_all_but({first.layer.digest, second.layer.digest}, [])
    assert cache.known("p") == [first, second]
    cache.forget_all_but({first.layer.digest}, [])
    assert (cache.known("p"), cache.keys("p")) == (None, None)


@pytest.mark.parametrize("text", ["", "[", "{}", "[1]", "null", "[]"])
def test_a_damaged_plan_is_not_known(home: Home, text: str) -> None:
    (home.folder("layers") / "p.plan").write_bytes(sealed("p", text.encode()))
    assert LayerCache(home).known("p") is None


# --- damage ---


def test_one_changed_digit_of_a_record_does_not_count(home: Home) -> None:
    """It would make another image, with another manifest of installed files, of the same lock."""
    cached = put(home)
    path = home.folder("layers") / f"{KEY}.json"
    content = cached.records[0].content
    changed = content[:-1] + ("0" if content[-1] != "0" else "1")
    path.write_text(path.read_text().replace(content, changed))
    assert LayerCache(home).get(KEY) is None
    assert put(home) == cached == LayerCache(home).get(KEY)


def test_a_record_that_the_disk_has_lost_does_not_count(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made again, and cleaned away: one bad sector is no end of a home."""
    cached = put(home)
    make_unreadable(home.root / "layers" / f"{KEY}.json", monkeypatch)
    assert LayerCache(home).get(KEY) is None
    LayerCache(home).forget_all_but([cached.layer.digest], [])
    assert not [*(home.root / "layers").iterdir()]


def test_the_record_of_another_layer_does_not_count(home: Home) -> None:
    put(home)
    folder = home.folder("layers")
    (folder / f"{KEY}.json").rename(folder / "other.json")
    assert LayerCache(home).get("other") is None


def test_a_blob_with_one_changed_byte_is_named_removed_and_made_again(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    cached = put(home)
    cache = LayerCache(home)
    blob = cache.blob(cached.layer.digest)
    good = blob.read_bytes()
    blob.chmod(0o644)
    blob.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    cache.remember("p", [KEY])
    assert cache.known("p") is None
    assert str(blob) in capsys.readouterr().err
    assert not blob.exists()
    assert put(home) == cached == LayerCache(home).get(KEY)
    assert blob.read_bytes() == good
