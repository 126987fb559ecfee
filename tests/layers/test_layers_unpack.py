"""A stranger's layer becomes a folder, and nothing outside that folder is touched, read or followed."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import stat
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reprobuild.errors import ImageError
from reprobuild.layers import unpack as module
from reprobuild.layers.unpack import unpack_entries
from reprobuild.layers.unpacked_layers import OPAQUE
from reprobuild.oci import merge_layers, path_index
from reprobuild.oci.file_tree import read_layers
from reprobuild.oci.merge_layers import KeptContents, read_layer
from reprobuild.oci.tar_fields import LayerRefused
from reprobuild.oci.tar_reader import Reader
from support.fuzz import LONG
from support.images import Entry, layer
from support.work import SIZE, grows_as_its_input

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
FOLDER, LINK, HARD = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE


def unpack(root: Path, *entries: Entry | str, owners: bool = False) -> Path:
    root.mkdir(exist_ok=True)
    descriptor = os.open(root, os.O_RDONLY)
    try:
        unpack_entries(Reader(io.BytesIO(layer(*entries))), descriptor, owners=owners, opaque=OPAQUE)
    finally:
        os.close(descriptor)
    return root


def state(folder: Path) -> dict[str, object]:
    """All that an attack could change, or read the time of, in a folder."""
    found: dict[str, object] = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else None
        marks = os.listxattr(path, follow_symlinks=False)
        found[str(path)] = (
            status.st_mode,
            status.st_uid,
            status.st_mtime_ns,
            status.st_nlink,
            marks,
            content,
        )
    return found


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Path]:
    """A folder of the host; the test fails where it has changed."""
    folder = tmp_path / "host"
    (folder / "keys").mkdir(parents=True)
    (folder / "keys/id_rsa").write_text("secret")
    (folder / "keys/id_rsa").chmod(0o600)
    before = state(folder)
    yield folder
    assert state(folder) == before


REACHING = [
    # A whiteout behind a link set an extended attribute on the host's folder.
    ((("l", LINK, "{host}"), ("l/.wh.keys", b"0", "")), "'l' is not a folder"),
    ((("l", LINK, "{host}/keys"), ("l/.wh..wh..opq", b"0", "")), "'l' is not a folder"),
    ((("l", LINK, "{host}"), ("l/new", b"0", "")), "'l' is not a folder"),
    ((("l", LINK, "{host}"), ("l/keys", FOLDER, "")), "'l' is not a folder"),
    ((("l", LINK, "{host}"), ("x", HARD, "l/keys/id_rsa")), "'l' is not a folder"),
    ((("l", LINK, "{host}"), ("l/keys/id_rsa", HARD, "l")), "'l' is not a folder"),
    ((("d", FOLDER, ""), ("d", LINK, "{host}"), ("d/new", b"0", "")), "'d' is not a folder"),
    ((("d/x", b"0", ""), ("d", LINK, "{host}"), ("d/y", b"0", "")), "'d' is not a folder"),
    ((("x", HARD, "{host}/keys/id_rsa"),), "is not a folder"),
    ((("d", FOLDER, ""), ("x", HARD, "d")), "is a hard link to 'd', which is not a file of this layer"),
    ((("x", HARD, "nothing"),), "is a hard link to 'nothing'"),
    ((("f", b"0", ""), ("f/x", b"0", "")), "'f' is not a folder"),
    ((("p", tarfile.FIFOTYPE, ""), ("p/x", b"0", "")), "'p' is not a folder"),
    ((("a/.wh.", b"0", ""),), "removes nothing that has a name"),
    (((".wh..", b"0", ""),), "removes nothing that has a name"),
    (((".wh...", b"0", ""),), "removes nothing that has a name"),
    (((".wh.x", FOLDER, ""), (".wh.x/y", b"0", "")), "removes a file, and has others in it"),
    ((("x", LINK, "n" * 4096),), "links to something that is not a path"),
]


@pytest.mark.parametrize("owners", [False, pytest.param(True, marks=AS_ROOT)])
@pytest.mark.parametrize(("names", "reason"), REACHING)
def test_a_layer_that_reaches_out_is_refused(
    tmp_path: Path, host: Path, names: tuple[tuple[str, bytes, str], ...], reason: str, owners: bool
) -> None:
    entries = [Entry(path=p, kind=kind, target=t.format(host=host), mode=0o777) for p, kind, t in names]
    with pytest.raises(LayerRefused, match=reason):
        unpack(tmp_path / "root", *entries, owners=owners)


@pytest.mark.parametrize("names", [names for names, _ in REACHING])
def test_the_same_is_refused_when_a_base_is_locked(
    tmp_path: Path, host: Path, names: tuple[tuple[str, bytes, str], ...]
) -> None:
    blob = tmp_path / ("0" * 64)
    entries = [Entry(path=p, kind=kind, target=t.format(host=host), mode=0o777) for p, kind, t in names]
    blob.write_bytes(layer(*entries))
    with pytest.raises(ImageError, match="layer sha256:000000000000… cannot be used: "):
        read_layers([blob], lambda _path, _size: False)


def test_a_link_in_the_place_of_a_folder_may_be(tmp_path: Path) -> None:
    """The later entry counts, for who locks as for who unpacks."""
    names = [
        ("d/x", b"0", ""),
        ("d", LINK, "e"),
        ("e/x", b"0", ""),
        ("f", b"0", ""),
        ("f", FOLDER, ""),
        ("f/x", b"0", ""),
    ]
    entries = [Entry(path=p, kind=kind, target=t, mode=0o755) for p, kind, t in names]
    unpacked = unpack(tmp_path / "root", *entries)
    blob = tmp_path / ("0" * 64)
    blob.write_bytes(layer(*entries))
    found = read_layers([blob], lambda _path, _size: False).files
    assert {*found} == {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*")}


def test_a_link_to_the_host_is_a_link_and_no_more(tmp_path: Path, host: Path) -> None:
    link = Entry(path="l", kind=LINK, target=str(host / "keys/id_rsa"), mode=0o666, mtime=5)
    root = unpack(tmp_path / "root", link, Entry(path="m", kind=HARD, target="l"))
    assert (root / "m").readlink() == host / "keys/id_rsa"
    assert (root / "l").lstat().st_mtime == 5


def test_what_comes_later_replaces_what_was_there(tmp_path: Path, host: Path) -> None:
    root = unpack(
        tmp_path / "root",
        Entry(path="a", kind=LINK, target=str(host)),
        Entry(path="a", kind=FOLDER, mode=0o750),
        Entry(path="a/b/c", content=b"1"),
        Entry(path="a/b", content=b"2"),
        Entry(path="d/e/f", content=b"3"),
        Entry(path="d", kind=LINK, target="a"),
        Entry(path="l", kind=LINK, target=str(host / "keys/id_rsa")),
        Entry(path="l", content=b"4"),
    )
    assert (root / "a/b").read_bytes() == b"2"
    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o750
    assert (root / "d").readlink() == Path("a")
    assert not (root / "l").is_symlink()
    assert (root / "l").read_bytes() == b"4"


def test_rights_and_times_of_folders_hold(tmp_path: Path) -> None:
    """Also of those that shut out their owner, who still has to fill them."""
    folder = Entry(path="shut", kind=FOLDER, mode=0o000, mtime=7)
    root = unpack(tmp_path / "root", folder, Entry(path="shut/in/x", content=b"x", mtime=9), "open/")
    assert stat.S_IMODE((root / "shut").stat().st_mode) == 0
    assert (root / "shut").stat().st_mtime == 7
    (root / "shut").chmod(0o700)
    assert (root / "shut/in/x").stat().st_mtime == 9
    assert stat.S_IMODE((root / "shut/in").stat().st_mode) == 0o755


def test_setuid_files_keep_their_bit(tmp_path: Path) -> None:
    root = unpack(tmp_path / "root", Entry(path="su", content=b"x", mode=0o4755))
    assert stat.S_IMODE((root / "su").stat().st_mode) == 0o4755


@AS_ROOT
def test_owners(tmp_path: Path) -> None:
    entries = [Entry(path="d", kind=FOLDER, uid=8), Entry(path="d/x", mode=0o4755, uid=5)]
    root = unpack(tmp_path / "root", *entries, Entry(path="l", kind=LINK, target="/", uid=6), owners=True)
    assert [(root / p).lstat().st_uid for p in ("d", "d/x", "l")] == [8, 5, 6]
    assert stat.S_IMODE((root / "d/x").stat().st_mode) == 0o4755  # chown takes the bit away


def test_marks_become_those_of_overlayfs(tmp_path: Path) -> None:
    entries = [
        ".wh.gone",
        "d/",
        "d/.wh..wh..opq",
        "e/x",
        ".wh.e",
        "e/.wh..wh..opq",
        ".wh.f",
        "f",
        ".wh..wh.plnk",
        ".wh.g/",
    ]
    root = unpack(tmp_path / "root", *entries)
    assert sorted(p.name for p in root.rglob("*")) == ["d", "e", "f", "g", "gone", "x"]
    for name in ("gone", "g"):
        status = (root / name).lstat()
        assert (stat.S_ISCHR(status.st_mode), status.st_rdev) == (True, 0)
    assert [os.listxattr(root / name) for name in "de"] == [[OPAQUE], [OPAQUE]]


SAME = Entry(path="f", content=b"x")
ANEW = "'d' is removed and a folder in one layer, on which engines differ"
OTHER = "'h' is a hard link to 'f' with another mode, owner or attribute"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([".wh.d", "d/", "d/x"], ANEW),
        (["d/x", ".wh.d"], ANEW),
        (["d/x", "d/.wh.x"], "'d/x' is made and then removed in one layer, on which engines differ"),
        ([SAME, Entry(path="h", kind=HARD, target="f", mode=0o4755)], OTHER),
        ([SAME, Entry(path="h", kind=HARD, target="f", attributes={"security.capability": "x"})], OTHER),
    ],
)
def test_what_engines_unpack_in_another_way_is_refused(
    entries: list[Entry | str], message: str, tmp_path: Path
) -> None:
    """Docker and Podman show what the specification hides, and give a hard link's mode to all its names."""
    with pytest.raises(LayerRefused) as unpacked:
        unpack(tmp_path / "root", *entries)
    with pytest.raises(LayerRefused) as merged:
        read_layer(io.BytesIO(layer(*entries)), lambda *_: False, KeptContents())
    assert (str(unpacked.value), str(merged.value)) == (message, message)


def test_a_hard_link_with_another_owner_is_refused() -> None:
    entries = [SAME, Entry(path="h", kind=HARD, target="f", uid=5)]
    with pytest.raises(LayerRefused, match=OTHER):
        read_layer(io.BytesIO(layer(*entries)), lambda *_: False, KeptContents())


def test_a_hard_link_without_the_file_s_attributes_is_another_name_of_it(tmp_path: Path) -> None:
    """As tar writes one."""
    file = Entry(path="f", content=b"x", mode=0o755, attributes={"security.capability": "x"})
    entries = [file, Entry(path="h", kind=HARD, target="f", mode=0o755)]
    assert (unpack(tmp_path / "root", *entries) / "h").samefile(tmp_path / "root/f")
    merged = read_layer(io.BytesIO(layer(*entries)), lambda *_: False, KeptContents())
    assert merged.entries["h"].attributes == "security.capability=78"


def test_names_do_not_depend_on_the_locale(tmp_path: Path) -> None:
    root = unpack(tmp_path / "root", Entry(path="é\udcff", content=b"x"))
    assert [os.fsencode(p.name) for p in root.iterdir()] == [b"\xc3\xa9\xff"]


names = st.sampled_from(
    ["a", "b", "a/b", "b/a", "a/b/c", ".wh.a", "a/.wh.b", "a/.wh..wh..opq", "..", "/", "./a//b"]
)
kinds = st.sampled_from([tarfile.REGTYPE, FOLDER, LINK, HARD, tarfile.FIFOTYPE, tarfile.CHRTYPE])


drawn_entries = st.lists(
    st.tuples(names, kinds, st.sampled_from(["a", "b", "a/b", "..", "{host}", "{host}/keys/id_rsa"]))
)
bounded = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)


def reaches_nothing(root: Path, host: Path, drawn: list[tuple[str, bytes, str]]) -> None:
    before = state(host)
    entries = [Entry(path=p, kind=kind, target=t.format(host=host), mode=0o755) for p, kind, t in drawn]
    with suppress(LayerRefused):
        unpack(root, *entries)
    assert state(host) == before
    assert all(path.lstat().st_dev == root.stat().st_dev for path in root.rglob("*"))


@bounded
@given(drawn_entries)
def test_no_layer_reaches_out(
    tmp_path_factory: pytest.TempPathFactory, host: Path, drawn: list[tuple[str, bytes, str]]
) -> None:
    reaches_nothing(tmp_path_factory.mktemp("root"), host, drawn)


@pytest.mark.slow
@settings(bounded, max_examples=LONG)
@given(drawn_entries)
def test_no_layer_of_very_many_reaches_out(
    tmp_path_factory: pytest.TempPathFactory, host: Path, drawn: list[tuple[str, bytes, str]]
) -> None:
    root = tmp_path_factory.mktemp("root")
    reaches_nothing(root, host, drawn)
    shutil.rmtree(root)


def files_below(root: Path) -> dict[str, tuple[str, str]]:
    """Type, and content or target, of what is not a folder."""
    found = {}
    for path in root.rglob("*"):
        mode, name = path.lstat().st_mode, path.relative_to(root).as_posix()
        if stat.S_ISREG(mode):
            found[name] = ("file", hashlib.sha256(path.read_bytes()).hexdigest())
        elif stat.S_ISLNK(mode):
            found[name] = ("link", str(path.readlink()))
        elif stat.S_ISFIFO(mode):
            found[name] = ("other", "")
    return found


def seen_as_unpacked(folder: Path, entries: list[Entry]) -> None:
    """Who reads a layer sees what who unpacks it gets, and both refuse the same ones."""
    blob = folder / ("0" * 64)
    blob.write_bytes(layer(*entries))
    try:
        unpacked = files_below(unpack(folder / "root", *entries))
    except LayerRefused:
        with pytest.raises(ImageError, match="cannot be used"):
            read_layers([blob], lambda _path, _size: False)
        return
    records = read_layers([blob], lambda _path, _size: False).files
    assert unpacked == {
        path: (record.kind, "" if record.kind == "other" else record.content)
        for path, record in records.items()
        if record.kind != "dir"
    }


SEEN = [
    # The file whose second name another takes is the one of that time.
    [("x", b"0", "1"), ("a", HARD, "x"), ("x", b"0", "2")],
    [("x", b"0", "1"), ("a", HARD, "x"), ("a", b"0", "2")],
    [("d/x", b"0", "1"), ("a", HARD, "d/x"), ("d", b"0", "2")],
    [("d/x", b"0", "1"), ("d", b"0", "2"), ("d", FOLDER, ""), ("d/x/y", b"0", "3")],
    [("d/.wh.x", b"0", ""), ("d", b"0", "1")],
    [("a", b"0", "1"), ("a", HARD, "a")],
    [("d", FOLDER, ""), ("a", HARD, "d"), ("d", b"0", "1")],
    [(".wh.a", b"0", ""), ("a/.wh.b", b"0", "")],
    [("a/.wh.b", b"0", ""), (".wh.a", b"0", "")],
    [("a", FOLDER, ""), (".wh.a", b"0", ""), ("a/.wh.b", b"0", "")],
]


@pytest.mark.parametrize("drawn", SEEN)
def test_a_layer_is_read_as_it_is_unpacked(tmp_path: Path, drawn: list[tuple[str, bytes, str]]) -> None:
    seen_as_unpacked(tmp_path, [entry_of(*each) for each in drawn])


def entry_of(path: str, kind: bytes, text: str) -> Entry:
    content = text.encode() if kind == tarfile.REGTYPE else b""
    return Entry(path=path, kind=kind, target=text or "a", content=content, mode=0o755)


@bounded
@given(
    st.lists(st.tuples(names, kinds.filter(tarfile.CHRTYPE.__ne__), st.sampled_from(["a", "b", "a/b", "c"])))
)
def test_any_layer_is_read_as_it_is_unpacked(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[str, bytes, str]]
) -> None:
    seen_as_unpacked(tmp_path_factory.mktemp("seen"), [entry_of(*each) for each in drawn])


def test_replacing_many_folders_takes_no_more_work_than_that(tmp_path: Path) -> None:
    """2,000,000 entries, each in the place of a folder, took years."""
    archives, blobs, roots = {}, {}, {}
    for count in (SIZE, 4 * SIZE):
        numbers = range(count)
        others = [f"others/{number}/x/" for number in range(4 * count)]
        archives[count] = layer(*others, *(path for n in numbers for path in (f"d{n}/x", f"d{n}")))
        blobs[count] = tmp_path / f"{count:064}"
        blobs[count].write_bytes(archives[count])
        (tmp_path / f"root-{count}").mkdir()
        roots[count] = os.open(tmp_path / f"root-{count}", os.O_RDONLY)

    def unpacked(count: int) -> None:
        reader = Reader(io.BytesIO(archives[count]))
        unpack_entries(reader, roots[count], owners=False, opaque=OPAQUE)

    def read(count: int) -> None:
        read_layers([blobs[count]], lambda _path, _size: False)

    try:
        assert grows_as_its_input(read, merge_layers, path_index)
        assert grows_as_its_input(unpacked, module, path_index)
    finally:
        for root in roots.values():
            os.close(root)
