"""Unpacked layers: verified, whole or not there, shared, and safe from a clean-up that goes on."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import zstandard

from reprobuild.errors import ImageError, ReprobuildError, StorageError
from reprobuild.host import sandbox
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.layers import unpacked_layers
from reprobuild.layers.cache import LayerCache
from reprobuild.oci.tar_writer import MTIME, Layer
from support.disk import make_unreadable, overlaid, tiny_disk
from support.images import PACK, Entry, layer
from support.small_root import files_of, layer_of

CONSOLE = Console(quiet=True)
FILES: dict[str, bytes | str] = {
    "usr/bin/tool": b"#!/bin/sh\n",
    "usr/lib/big": bytes(range(256)) * 20_000,
    "bin": "usr/bin",
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def unpack(home: Home, layer: Layer) -> Path:
    blob = LayerCache(home).blob(layer.digest)
    return unpacked_layers.unpack(Host(home, CONSOLE), blob, layer.diff_id, lambda _: None)


def damage(home: Home, layer: Layer, data: bytes) -> None:
    blob = LayerCache(home).blob(layer.digest)
    blob.chmod(0o644)
    blob.write_bytes(data)


def test_a_layer_becomes_a_folder(home: Home) -> None:
    layer = layer_of(home, FILES)
    blob = LayerCache(home).blob(layer.digest)
    seen: list[int] = []
    folder = unpacked_layers.unpack(Host(home, CONSOLE), blob, layer.diff_id, seen.append)
    assert folder == home.root / "roots" / layer.diff_id[7:]
    assert sum(seen) == layer.size
    tool = folder / "usr/bin/tool"
    assert (tool.read_bytes(), tool.stat().st_mode & 0o7777) == (b"#!/bin/sh\n", 0o755)
    assert tool.stat().st_mtime == MTIME
    assert (tool.stat().st_uid, tool.stat().st_gid) == (os.geteuid(), os.getegid())
    assert (folder / "usr/lib/big").read_bytes() == FILES["usr/lib/big"]
    assert (folder / "bin").readlink() == Path("usr/bin")
    assert [*home.folder("tmp").iterdir()] == []


def test_it_is_unpacked_once(home: Home) -> None:
    layer = layer_of(home, FILES)
    folder = unpack(home, layer)
    before = folder.stat().st_ino
    LayerCache(home).blob(layer.digest).unlink()
    assert unpack(home, layer).stat().st_ino == before


def test_two_at_once_share_it(home: Home) -> None:
    layer = layer_of(home, FILES)
    with ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(lambda _: unpack(home, layer), range(4)))
    assert folders == {home.root / "roots" / layer.diff_id[7:]}
    assert [*home.folder("tmp").iterdir()] == []


@pytest.mark.parametrize("harm", ["other", "cut", "rubbish", "empty", "flipped", "no-tar", "cut-tar"])
def test_a_damaged_blob_is_an_error_of_the_image_and_leaves_nothing(home: Home, harm: str) -> None:
    layer = layer_of(home, FILES)
    good = LayerCache(home).blob(layer.digest).read_bytes()
    tar = zstandard.ZstdDecompressor().decompressobj().decompress(good)
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 0xFF
    other = layer_of(home, {"x": b"another layer"}, key="other")
    bad = {
        "other": LayerCache(home).blob(other.digest).read_bytes(),
        "cut": good[: len(good) // 2],
        "rubbish": b"no layer at all",
        "empty": b"",
        "flipped": bytes(flipped),
        "no-tar": zstandard.compress(b"rubbish" * 999),
        "cut-tar": zstandard.compress(tar[: len(tar) // 2]),
    }[harm]
    damage(home, layer, bad)
    with pytest.raises(ImageError) as caught:
        unpack(home, layer)
    assert layer.digest[7:26] in caught.value.message
    assert "`reprobuild image`" in caught.value.hint
    assert not LayerCache(home).blob(layer.digest).exists()
    assert [*home.folder("roots").iterdir()] == []
    assert [*home.folder("tmp").iterdir()] == []
    LayerCache(home).blob(layer.digest).write_bytes(good)
    assert (unpack(home, layer) / "usr/bin/tool").exists()


@pytest.mark.parametrize("harm", ["flip", "cut", "empty", "gone", "more", "mode", "pipe", "note"])
def test_a_damaged_folder_is_named_and_unpacked_again(
    home: Home, capsys: pytest.CaptureFixture[str], harm: str
) -> None:
    layer = layer_of(home, FILES)
    folder = unpack(home, layer)
    file = folder / "usr/lib/big"
    data = file.read_bytes()
    match harm:
        case "flip":
            file.write_bytes(data[:-1] + b"x")
        case "cut":
            os.truncate(file, len(data) - 1)
        case "empty":
            os.truncate(file, 0)
        case "gone":
            file.unlink()
        case "more":
            (folder / "usr/lib/more").touch()
        case "mode":
            file.chmod(0o700)
        case "pipe":
            note = folder.with_name(f"{folder.name}.size")
            note.unlink()
            os.mkfifo(note)
        case _:
            folder.with_name(f"{folder.name}.size").write_text("")
    assert unpack(home, layer) == folder
    assert str(folder) in capsys.readouterr().err
    assert file.read_bytes() == data
    assert [path.name for path in file.parent.iterdir()] == ["big"]
    before = folder.stat().st_ino
    assert unpack(home, layer).stat().st_ino == before


def test_what_a_disk_has_lost_is_unpacked_again_and_not_called_changed(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = layer_of(home, FILES)
    folder = unpack(home, layer)
    make_unreadable(folder.with_name(f"{folder.name}.size"), monkeypatch)
    assert unpack(home, layer) == folder
    said = capsys.readouterr().err
    assert f"{folder}: files of this unpacked layer are not known: {folder.name}.size: Input/output" in said

    def lost(path: Path) -> object:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    with monkeypatch.context() as context:
        context.setattr(os, "scandir", lost)
        context.setattr(Path, "iterdir", lost)
        assert unpacked_layers._fault(folder) == "cannot be read: Input/output error"
        with pytest.raises(StorageError, match=f"{home.root}/tmp: Input/output error"):
            home.sweep()


@pytest.mark.core
@pytest.mark.parametrize("harm", ["owner", "mark", "earlier"])
def test_a_home_that_was_copied_or_given_to_another_user_is_unpacked_again(
    home: Home, capsys: pytest.CaptureFixture[str], harm: str
) -> None:
    """Copies lose overlayfs's marks and the owners: what a layer hides would be seen, as another user's."""
    layer = layer_of(home, {**FILES, "opt/.wh..wh..opq": b""})
    folder = unpack(home, layer)
    match harm:
        case "owner" if os.geteuid() == 0:
            os.chown(folder / "usr/lib/big", 4321, 4321)
        case "mark" if os.geteuid() == 0:
            os.removexattr(folder / "opt", unpacked_layers.OPAQUE)
        case "earlier":
            note = folder.with_name(f"{folder.name}.size")
            note.write_text(note.read_text().replace(" 2:", " "))
        case _:
            pytest.skip("only root changes an owner")
    assert unpack(home, layer) == folder
    assert " 2:" in folder.with_name(f"{folder.name}.size").read_text()
    # After an upgrade it would be a warning for each layer of each image, of which none is damaged.
    said = f"{folder}: files of this unpacked layer were changed or lost" if harm != "earlier" else ""
    assert (said in capsys.readouterr().err) if said else capsys.readouterr().err == ""
    assert (folder / "usr/lib/big").stat().st_uid == os.geteuid()
    assert os.getxattr(folder / "opt", unpacked_layers.OPAQUE) == b"y"


@pytest.mark.parametrize("status", [1, -7, 135])
def test_a_layer_whose_file_the_disk_lost_is_unpacked_again_after_a_failed_run(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    layer = layer_of(home, FILES)
    folder, host = unpack(home, layer), Host(home, CONSOLE)
    note = folder.with_name(f"{folder.name}.size")

    def lost(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def read() -> str:
        unpacked_layers.drop_unreadable(host, [folder], status)
        return capsys.readouterr().err

    assert read() == ""
    with monkeypatch.context() as context:
        context.setattr(os, "readv", lost)
        if status == 1:
            assert read() == ""  # it was read a moment ago
            note.write_text(" ".join(note.read_text().split()[:2]))
        assert f"{folder}/usr/" in (said := read()), said
        assert "Input/output error: the next run unpacks this layer again" in said
    held = os.open(folder, os.O_RDONLY)  # or the disk may give the new one its number
    try:
        assert not os.path.samestat(unpack(home, layer).stat(), os.fstat(held))
    finally:
        os.close(held)
    assert f"{folder}: files of this unpacked layer cannot be read: it is" in capsys.readouterr().err
    assert read() == ""


@pytest.mark.core
def test_a_home_of_a_container_s_image_is_unpacked_again(tmp_path: Path, home: Home) -> None:
    """overlayfs moves no folder of the image: it is removed in its place."""
    layer = layer_of(home, FILES)
    (unpack(home, layer) / "usr/lib/big").write_bytes(b"changed")
    with overlaid(tmp_path, home.root) as place:
        seen = Home(place)
        assert (unpack(seen, layer) / "usr/lib/big").read_bytes() == FILES["usr/lib/big"]
        assert unpacked_layers.remove_unused(seen, set(), []) > 0
        assert [*seen.folder("roots").iterdir(), *seen.folder("tmp").iterdir()] == []


def test_a_damaged_folder_in_use_is_not_taken_away(home: Home) -> None:
    layer = layer_of(home, FILES)
    folder = unpack(home, layer)
    (folder / "usr/bin/tool").write_bytes(b"other")
    with unpacked_layers.in_use([folder]), pytest.raises(ImageError, match="a run uses it"):
        unpack(home, layer)
    assert (unpack(home, layer) / "usr/bin/tool").read_bytes() == FILES["usr/bin/tool"]


@pytest.mark.core
def test_a_full_disk_is_no_damage(home: Home, tmp_path: Path) -> None:
    layer = layer_of(home, FILES)
    blob = LayerCache(home).blob(layer.digest)
    with tiny_disk(tmp_path / "small", 2 << 20) as small:
        other = Home(small)
        with pytest.raises(StorageError, match="No space left on device"):
            unpacked_layers.unpack(Host(other, CONSOLE), blob, layer.diff_id, lambda _: None)
        assert [*other.folder("roots").iterdir(), *other.folder("tmp").iterdir()] == []


def test_a_blob_that_is_gone_is_said_plainly(home: Home) -> None:
    layer = layer_of(home, FILES)
    LayerCache(home).blob(layer.digest).unlink()
    with pytest.raises(ReprobuildError):
        unpack(home, layer)
    assert [*home.folder("roots").iterdir()] == []


def test_only_what_is_unwanted_and_unused_goes(home: Home) -> None:
    wanted, used, unused = (layer_of(home, {"x": text}, key=text.decode()) for text in (b"a", b"bb", b"ccc"))
    folders = [unpack(home, layer) for layer in (wanted, used, unused)]
    with unpacked_layers.in_use([folders[1]]):
        assert unpacked_layers.remove_unused(home, {wanted.diff_id}, []) == len(b"ccc")
        assert [folder.exists() for folder in folders] == [True, True, False]
    assert unpacked_layers.remove_unused(home, {wanted.diff_id}, []) == len(b"bb")
    assert [folder.exists() for folder in folders] == [True, False, False]
    assert [*home.folder("tmp").iterdir()] == []


def test_those_used_longest_ago_go_first(home: Home) -> None:
    made = [layer_of(home, {"x": text * 100}, key=text.decode()) for text in (b"a", b"b", b"c", b"d")]
    folders = [unpack(home, each) for each in made]
    for age, folder in enumerate(folders):
        os.utime(folder.with_name(f"{folder.name}.size"), (1000 + age, 1000 + age))
    with unpacked_layers.in_use([folders[0]]):
        pass  # now it is the latest
    assert sum(unpacked_layers.unpacked_sizes(home).values()) == 400
    assert unpacked_layers.keep_within(home, 400) == 0
    with unpacked_layers.in_use([folders[1]]):
        assert unpacked_layers.keep_within(home, 250) == 200
        assert [folder.exists() for folder in folders] == [True, True, False, False]
        # One that is in use stays, though it is too much.
        assert unpacked_layers.keep_within(home, 50) == 100
    assert [folder.exists() for folder in folders] == [False, True, False, False]
    assert sorted(p.name for p in home.folder("roots").iterdir()) == [
        folders[1].name,
        f"{folders[1].name}.size",
    ]


def test_a_layer_that_an_earlier_version_unpacked_is_counted(home: Home) -> None:
    folder = unpack(home, layer_of(home, {"x": b"abc"}))
    folder.with_name(f"{folder.name}.size").unlink()
    assert sum(unpacked_layers.unpacked_sizes(home).values()) == 3
    assert unpacked_layers.keep_within(home, 0) == 3


def test_several_runs_use_a_layer_at_once(home: Home) -> None:
    folder = unpack(home, layer_of(home, {"x": b"a"}))
    with unpacked_layers.in_use([folder]):
        with unpacked_layers.in_use([folder]):
            pass
        assert unpacked_layers.remove_unused(home, set(), []) == 0
        assert folder.exists()


def test_a_disk_without_locks_is_named(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The layers are there, so nothing was locked before."""
    folder = unpack(home, layer_of(home, {"x": b"a"}))

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        pytest.raises(StorageError, match=r"the file system has no locks \(flock\)"),
        unpacked_layers.in_use([folder]),
    ):
        pytest.fail("used")


def test_a_layer_that_was_removed_meanwhile_is_not_used(home: Home) -> None:
    folder = unpack(home, layer_of(home, {"x": b"a"}))
    unpacked_layers.remove_unused(home, set(), [])
    with (
        pytest.raises(ImageError, match="removed by another process") as caught,
        unpacked_layers.in_use([folder]),
    ):
        pytest.fail("used")
    assert caught.value.hint == "run the command again"


def test_a_layer_that_is_removed_while_it_is_claimed_is_not_used(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = unpack(home, layer_of(home, {"x": b"a"}))
    flock = fcntl.flock

    def late(descriptor: int, operation: int) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(fcntl, "flock", flock)
            unpacked_layers.remove_unused(home, set(), [])
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(ImageError, match="removed by another process"), unpacked_layers.in_use([folder]):
        pytest.fail("used")


def test_unpacking_waits_for_whoever_unpacks_already(home: Home) -> None:
    layer = layer_of(home, FILES)
    done = threading.Event()

    def work() -> None:
        unpack(home, layer)
        done.set()

    with home.lock(f"root-{layer.diff_id[7:23]}", CONSOLE):
        thread = threading.Thread(target=work)
        thread.start()
        assert not done.wait(0.3)
    thread.join(timeout=30)
    assert done.is_set()


def test_what_a_layer_hides_is_hidden(home: Home) -> None:
    below = layer_of(home, {**FILES, "etc/one": b"1", "etc/two": b"2", "opt/a/b": b"b"}, key="below")
    marks: dict[str, bytes | str] = {
        "etc/.wh.one": b"",
        "opt/a/.wh..wh..opq": b"",
        "opt/a/c": b"c",
        ".wh.bin": b"",
        "bin": b"now a file",
    }
    above = layer_of(home, marks, key="above")
    programs: dict[str, bytes | str] = {p: s.read_bytes() for p, s in files_of(["sh", "ls"]).items()}
    top = layer_of(home, programs, key="programs")
    layers = [unpack(home, layer) for layer in (below, above, top)]
    assert not list(layers[1].rglob(".wh.*"))
    task = sandbox.Task(argv=["/usr/bin/ls", "/etc", "/opt/a", "/bin"], env={"LC_ALL": "C"})
    with home.scratch("run") as folder:
        done = sandbox.run(folder, layers, task)
    assert done.stdout.decode().split() == ["/bin", "/etc:", "two", "/opt/a:", "c"]


@pytest.mark.parametrize("kind", ["plain", "gzip", "zstd"])
def test_layers_of_other_tools(home: Home, kind: str) -> None:
    content = layer(
        "usr/",
        Entry(path="usr/tool", content=b"tool", mode=0o755),
        Entry(path="dev/null", kind=b"3", device=(1, 3)),
    )
    blob = home.folder("tmp") / "blob"
    blob.write_bytes(PACK[kind](content))
    digest = "sha256:" + hashlib.sha256(content).hexdigest()
    folder = unpacked_layers.unpack(Host(home, CONSOLE), blob, digest, lambda _: None)
    assert (folder / "usr/tool").read_bytes() == b"tool"
    assert not (folder / "dev/null").exists()
    blob.write_bytes(PACK[kind](content)[:-40] if kind != "plain" else content[:600])
    other = Home(home.root / "other")
    with pytest.raises(ImageError, match="cannot be unpacked"):
        unpacked_layers.unpack(Host(other, CONSOLE), blob, digest, lambda _: None)


def test_a_folder_that_no_entry_names_is_open_to_all(home: Home) -> None:
    content = layer(Entry(path="etc/one", content=b"1", mode=0o600))
    blob = home.folder("tmp") / "blob"
    blob.write_bytes(content)
    digest = "sha256:" + hashlib.sha256(content).hexdigest()
    before = os.umask(0o077)
    try:
        folder = unpacked_layers.unpack(Host(home, CONSOLE), blob, digest, lambda _: None)
    finally:
        os.umask(before)
    assert (folder / "etc").stat().st_mode & 0o7777 == 0o755
    assert (folder / "etc/one").stat().st_mode & 0o7777 == 0o600
