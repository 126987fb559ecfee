from __future__ import annotations

import gzip
import hashlib
import io
import random
import tarfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprobuild.errors import ImageError
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.oci import merge_layers, tar_reader
from reprobuild.oci.file_tree import ImageTree, read_root, read_tree, tar_digest
from reprobuild.oci.stream import archive_members
from reprobuild.verify.compare import compare
from reprobuild.verify.find import tree_of
from support.images import PACK, Entry, docker_archive, layer, layout, oci_archive

CONSOLE = Console(quiet=True)
CONFIG = {"Env": ["A=1", "B=x=y"], "Cmd": ["python3"], "WorkingDir": "/"}


def tree(place: Path | str, tmp_path: Path) -> ImageTree:
    return tree_of(str(place), Host(Home(tmp_path / "home"), CONSOLE))


def of(tmp_path: Path, *layers: bytes) -> dict[str, tuple[str, int, str]]:
    found = tree(docker_archive(tmp_path / "a.tar", layers, {}), tmp_path)
    return {path: (r.kind, r.mode, r.owner) for path, r in found.files.items()}


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("pack", PACK)
def test_every_form_of_one_image_gives_one_digest(tmp_path: Path, pack: str) -> None:
    below = layer(
        "etc/", Entry(path="etc/a", content=b"1"), Entry(path="etc/s", kind=tarfile.SYMTYPE, target="a")
    )
    above = layer(Entry(path="etc/b", content=b"2" * 70_000, mode=0o755, uid=7))
    first = tree(docker_archive(tmp_path / "d.tar", [below, above], CONFIG), tmp_path)
    folder = layout(tmp_path / "oci", {"x:1": ([PACK[pack](data) for data in (below, above)], CONFIG)})
    second = tree(folder, tmp_path)
    third = tree(oci_archive(tmp_path / "o.tar", folder), tmp_path)
    assert first.digest == second.digest == third.digest
    assert compare(first, second) == compare(first, third) == []
    assert {path: (r.kind, r.mode, r.owner, r.content) for path, r in second.files.items()} == {
        "etc": ("dir", 0o755, "0:0", "-"),
        "etc/a": ("file", 0o644, "0:0", sha(b"1")),
        "etc/s": ("link", 0o777, "0:0", "a"),
        "etc/b": ("file", 0o755, "7:0", sha(b"2" * 70_000)),
    }


def test_time_stamps_order_and_layering_do_not_count(tmp_path: Path) -> None:
    a, b = Entry(path="d/a", content=b"1", mtime=5), Entry(path="d/b", content=b"2", mtime=9)
    one = tree(docker_archive(tmp_path / "1.tar", [layer("d/", a, b)], {}), tmp_path)
    other = tree(docker_archive(tmp_path / "2.tar", [layer("d/", b), layer(a)], {}), tmp_path)
    assert one.digest == other.digest


@pytest.mark.parametrize(
    "changed",
    [
        Entry(path="d/a", content=b"2"),
        Entry(path="d/a", content=b"1", mode=0o600),
        Entry(path="d/a", content=b"1", uid=1),
        Entry(path="d/c", content=b"1"),
        Entry(path="d/a", kind=tarfile.SYMTYPE, target=sha(b"1")),
        Entry(path="d/a", kind=tarfile.DIRTYPE),
        Entry(path="d/a", kind=tarfile.FIFOTYPE),
    ],
)
def test_path_type_mode_owner_and_content_count(tmp_path: Path, changed: Entry) -> None:
    one = tree(
        docker_archive(tmp_path / "1.tar", [layer("d/", Entry(path="d/a", content=b"1"))], {}), tmp_path
    )
    other = tree(docker_archive(tmp_path / "2.tar", [layer("d/", changed)], {}), tmp_path)
    assert one.digest != other.digest
    assert compare(one, other)


def test_a_whiteout_takes_away_what_is_below_and_nothing_else(tmp_path: Path) -> None:
    below = layer("d/", "d/a", "d/ab", "e/", "e/x", "e/y/", "e/y/z", "f")
    above = layer("d/.wh.a", ".wh.e", "e2")
    assert of(tmp_path, below, above).keys() == {"d", "d/ab", "f", "e2"}


def test_an_opaque_folder_hides_what_is_below_it_but_not_its_own(tmp_path: Path) -> None:
    below = layer("d/", "d/a", "d/s/", "d/s/b", "e")
    above = layer("d/", "d/new", "d/.wh..wh..opq")
    assert of(tmp_path, below, above).keys() == {"d", "d/new", "e"}


def test_a_file_over_a_folder_and_a_folder_over_a_file(tmp_path: Path) -> None:
    below = layer("d/", "d/a", "f")
    above = layer("d", "f/", "f/b")
    found = of(tmp_path, below, above)
    assert {path: kind for path, (kind, _, _) in found.items()} == {"d": "file", "f": "dir", "f/b": "file"}


@pytest.mark.parametrize(
    ("above", "reason"),
    [
        (["l/x"], "'l' is not a folder, but has files in it"),
        (["l/new/x"], "'l' is not a folder"),
        (["f/x"], "'f' is not a folder"),
        (["l/.wh.x"], "'l' is not a folder"),
        (["f/.wh..wh..opq"], "'f' is not a folder"),
        ([Entry(path="l/x", kind=tarfile.LNKTYPE, target="d/x")], "'l' is not a folder"),
    ],
)
def test_what_is_below_a_link_or_file_of_a_lower_layer_is_refused(
    tmp_path: Path, above: list[Entry | str], reason: str
) -> None:
    """Podman makes a folder in its place; containerd follows the link."""
    below = layer("d/", "d/x", Entry(path="l", kind=tarfile.SYMTYPE, target="d"), "f")
    with pytest.raises(ImageError, match=reason):
        of(tmp_path, below, layer(*above))
    # A layer that has the folder itself says what it means, and so does one that takes the link away.
    assert of(tmp_path, below, layer("l/", "l/x"))["l"][0] == "dir"
    assert of(tmp_path, below, layer(".wh.l"), layer("l/x"))["l"][0] == "dir"
    inner = layer("a/", Entry(path="a/l", kind=tarfile.SYMTYPE, target="d"))
    assert of(tmp_path, inner, layer("a/", "a/.wh..wh..opq", "a/l/x"))["a/l"][0] == "dir"


def test_a_folder_named_again_keeps_what_is_in_it(tmp_path: Path) -> None:
    found = of(tmp_path, layer("d/", "d/a"), layer(Entry(path="d/", kind=tarfile.DIRTYPE, mode=0o700)))
    assert found == {"d": ("dir", 0o700, "0:0"), "d/a": ("file", 0o644, "0:0")}


def test_a_hard_link_is_the_file_that_it_names(tmp_path: Path) -> None:
    link = Entry(path="b", kind=tarfile.LNKTYPE, target="./a", mode=0o755)
    one = layer(Entry(path="a", content=b"1", mode=0o755), link)
    two = layer(Entry(path="a", content=b"1", mode=0o755), Entry(path="b", content=b"1", mode=0o755))
    first = tree(docker_archive(tmp_path / "1.tar", [one], {}), tmp_path)
    assert first.digest == tree(docker_archive(tmp_path / "2.tar", [two], {}), tmp_path).digest


def test_a_folder_that_no_layer_names_is_there(tmp_path: Path) -> None:
    assert of(tmp_path, layer("a/b/c"))["a/b"] == ("dir", 0o755, "0:0")


def test_equal_layers_are_read_once_through_a_link(tmp_path: Path) -> None:
    again = layer("a")
    assert of(tmp_path, again, layer(".wh.a"), again).keys() == {"a"}


def test_one_of_several_images_is_named_behind_a_hash_sign(tmp_path: Path) -> None:
    folder = layout(tmp_path / "oci", {"x:1": ([layer("a")], {}), "y:1": ([layer("b")], {})})
    for place in (folder, oci_archive(tmp_path / "o.tar", folder)):
        assert tree(f"{place}#y:1", tmp_path).files.keys() == {"b"}
        with pytest.raises(ImageError, match="holds 2 images") as error:
            tree(place, tmp_path)
        assert "x:1" in error.value.hint
        with pytest.raises(ImageError, match="holds 0 images called z:1"):
            tree(f"{place}#z:1", tmp_path)


def test_a_missing_blob_is_named(tmp_path: Path) -> None:
    folder = layout(tmp_path / "oci", {"x:1": ([layer("a")], {})})
    blob = next(p for p in (folder / "blobs/sha256").iterdir() if b"ustar" in p.read_bytes())
    blob.unlink()
    with pytest.raises(ImageError, match=blob.name):
        tree(folder, tmp_path)


@given(st.integers(0, 2**32))
def test_garbage_is_an_image_error(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """A good archive with some bytes changed is read, or refused; nothing else happens."""
    tmp_path = tmp_path_factory.mktemp("g")
    good = docker_archive(
        tmp_path / "a.tar", [PACK["gzip"](layer("d/", "d/a")), layer("b")], CONFIG
    ).read_bytes()
    chance = random.Random(seed)
    bad = bytearray(good[: chance.randrange(1, len(good))] if seed % 2 else good)
    for _ in range(chance.randrange(1, 6)):
        bad[chance.randrange(len(bad))] = chance.randrange(256)
    (tmp_path / "b.tar").write_bytes(bad)
    with suppress(ImageError):
        tree(tmp_path / "b.tar", tmp_path)


def test_no_image_at_all() -> None:
    with pytest.raises(ImageError, match="nothing: cannot be read: it is empty"):
        read_tree([], "nothing")


CAPABLE = {"security.capability": "\x01\x00\x02"}


def root(*entries: Entry | str) -> ImageTree:
    return read_root(io.BytesIO(layer(*entries)), "x", CONFIG, replaced=True)


def test_the_root_of_a_container_is_read_without_what_docker_puts_there() -> None:
    made = [Entry(path=path, mode=mode) for path, mode in (("dev/console", 0o755), ("etc/hosts", 0o700))]
    mtab = Entry(path="etc/mtab", kind=tarfile.SYMTYPE, target="/proc/mounts", mode=0o777)
    own = Entry(path="etc/a", content=b"1", attributes=CAPABLE)
    image = read_root(io.BytesIO(layer("dev/", "etc/", own)), "x", CONFIG)
    found = root("dev/", "dev/pts/", "etc/", *made, mtab, own, "proc/", "sys/")
    assert found.files.keys() == {"etc", "etc/a"}
    assert found.digest == image.digest
    assert compare(found, image) == []
    assert {"etc/hosts", "proc"} <= set(found.unknown)
    assert not image.unknown


def test_what_an_image_itself_has_at_those_paths_is_not_left_out() -> None:
    there = ("etc/hosts/", "etc/hosts/evil", "dev/shm/", "dev/shm/evil", Entry(path="proc", content=b"x"))
    found = root(*there)
    assert {"etc/hosts", "etc/hosts/evil", "dev/shm", "dev/shm/evil", "proc"} <= found.files.keys()
    assert not found.unknown & {"etc/hosts", "dev/shm", "proc"}


def test_in_a_root_no_name_hides_another() -> None:
    assert root("d/a", "d/.wh.a", "d/.wh..wh..opq").files.keys() == {"d", "d/a", "d/.wh.a", "d/.wh..wh..opq"}


def test_attributes_are_read_and_of_the_digest_capabilities_are_a_part(tmp_path: Path) -> None:
    marks = {**CAPABLE, "security.selinux": "l", "trusted.overlay.origin": "y", "user.a": "b"}
    one, other, plain = (
        tree(docker_archive(tmp_path / name, [layer(Entry(path="a", attributes=its))], {}), tmp_path)
        for name, its in (("1", marks), ("2", CAPABLE), ("3", {}))
    )
    assert one.files["a"].attributes == "security.capability=010002\nuser.a=62"
    assert one.digest == other.digest != plain.digest
    assert [str(each) for each in compare(one, other)] == [
        "/a: attributes: security.capability=010002 user.a=62 → security.capability=010002"
    ]
    assert compare(other, plain)[0].kind == "attributes"


@pytest.mark.parametrize("config", [None, {"Env": "A=1"}, {"env": []}, {"Labels": {"a": 1}}, "x"])
def test_a_configuration_that_is_none(config: object) -> None:
    if config is None:
        assert read_root(io.BytesIO(layer()), "x", config).config == {}
        return
    with pytest.raises(ImageError, match="x: its configuration cannot be read"):
        read_root(io.BytesIO(layer()), "x", config)


def test_a_root_that_cannot_be_read() -> None:
    with pytest.raises(ImageError, match="'l' is a second name of 'none'"):
        root(Entry(path="l", kind=tarfile.LNKTYPE, target="none"))
    with pytest.raises(ImageError, match="x: cannot be read: it ends in the middle"):
        read_root(io.BytesIO(layer("a")[:700]), "x", CONFIG)


def test_the_files_that_are_looked_at_are_bounded_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_layers, "MOST_KEPT_TOGETHER", 5)
    good = [Entry(path=name, content=b"123") for name in ("a", "b")]
    archive = docker_archive(tmp_path / "a.tar", [layer(*good), layer(Entry(path="c", content=b"45"))], {})
    with archive.open("rb") as file:
        found = read_tree(archive_members(file), "x", keep=lambda *_: True)
    assert found.kept == {"a": b"123", "b": b"123", "c": b"45"}  # the same content counts once
    archive = docker_archive(tmp_path / "b.tar", [layer(*good), layer(Entry(path="c", content=b"456"))], {})
    with archive.open("rb") as file, pytest.raises(ImageError, match="more than 5 bytes in files whose"):
        read_tree(archive_members(file), "x", keep=lambda *_: True)


def test_a_blob_that_unpacks_to_no_tar_has_no_digest_of_one(tmp_path: Path) -> None:
    blob = tmp_path / "blob"
    for content in (b"", b"text", b"\x1f\x8bbad", gzip.compress(bytes(2048))[:-9]):
        blob.write_bytes(content)
        assert tar_digest(blob) == ""
    blob.write_bytes(gzip.compress(bytes(2048)))
    assert tar_digest(blob) == f"sha256:{hashlib.sha256(bytes(2048)).hexdigest()}"


def test_a_blob_that_inflates_without_end_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blob = tmp_path / "blob"
    blob.write_bytes(gzip.compress(bytes(1 << 20)))
    assert tar_digest(blob)
    monkeypatch.setattr(tar_reader, "MOST_BYTES", (1 << 20) - 1)
    assert tar_digest(blob) == ""
