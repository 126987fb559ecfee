"""A layer's tar: what tarfile writes is read as tarfile does; what means harm, or two things, is refused."""

from __future__ import annotations

import contextlib
import gzip
import io
import tarfile
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reprobuild.oci import tar_reader
from reprobuild.oci.tar_fields import LayerRefused
from reprobuild.oci.tar_reader import Entry, Reader
from support.images import Entry as Written
from support.images import layer

parts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0/"), min_size=1, max_size=80)
paths = st.lists(parts.filter(lambda p: p not in (".", "..")), min_size=1, max_size=5).map("/".join)


def read(data: bytes) -> list[tuple[Entry, bytes]]:
    reader = Reader(io.BytesIO(data))
    return [(entry, b"".join(reader.content())) for entry in reader]


def refusal(data: bytes) -> str:
    with pytest.raises(LayerRefused) as caught:
        read(data)
    return str(caught.value)


def raw(info: tarfile.TarInfo, content: bytes = b"", **pax: str) -> bytes:
    """An entry with any header, also one that tarfile would not write for that content."""
    info.pax_headers = pax
    return info.tobuf(tarfile.PAX_FORMAT) + content + bytes(-len(content) % 512)


def gnu(info: tarfile.TarInfo) -> bytes:
    return info.tobuf(tarfile.GNU_FORMAT)


def changed(data: bytes, start: int, new: bytes) -> bytes:
    """The first header with other bytes and the checksum that fits them."""
    block = bytearray(data[:512])
    block[start : start + len(new)] = new
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + data[512:]


def info(name: str = "x", **fields: Any) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(found, key, value)
    return found


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
@given(
    name=paths,
    content=st.binary(max_size=1100),
    mode=st.integers(0, 0o7777),
    uid=st.integers(0, (1 << 32) - 2),
    mtime=st.integers(0, (1 << 33) - 1),
    target=paths,
)
@example(name="d/" * 40 + "f" * 90, content=b"x", mode=0, uid=8**7, mtime=0, target="t" * 101)
def test_it_reads_what_tarfile_writes(
    form: int, name: str, content: bytes, mode: int, uid: int, mtime: int, target: str
) -> None:
    out = io.BytesIO()
    try:
        with tarfile.open(fileobj=out, mode="w", format=form, encoding="utf-8") as tar:
            for kind, size in ((tarfile.REGTYPE, len(content)), (tarfile.SYMTYPE, 0), (tarfile.DIRTYPE, 0)):
                entry = info(name, type=kind, mode=mode, uid=uid, mtime=mtime, size=size, linkname=target)
                tar.addfile(entry, io.BytesIO(content))
    except ValueError:
        assert form == tarfile.USTAR_FORMAT  # has no room for it
        return
    (file, found), (link, _), (folder, _) = read(out.getvalue())
    assert (file.path, file.kind, file.size, found) == (name, "file", len(content), content)
    assert (file.mode, file.uid, file.mtime) == (mode, uid, mtime)
    assert (link.path, link.kind, link.target) == (name, "link", target)
    assert (folder.path, folder.kind) == (name, "dir")


@given(st.binary(max_size=2048), st.integers(0, 4095), st.binary(min_size=1, max_size=8))
def test_no_bytes_do_more_than_be_refused(data: bytes, start: int, new: bytes) -> None:
    good = layer(
        "usr/", Written(path="usr/a", content=b"a"), Written(path="n" * 200, kind=b"2", target="t" * 200)
    )
    for bad in (data, good[:start] + new + good[start + len(new) :], changed(good, start % 500, new)):
        with contextlib.suppress(LayerRefused):
            read(bad)


@pytest.mark.parametrize(
    ("path", "kind", "device"),
    [
        ("opt/disk", tarfile.BLKTYPE, (7, 0)),
        ("opt/null", tarfile.CHRTYPE, (1, 3)),
        ("dev/sda", tarfile.BLKTYPE, (8, 0)),
        ("dev/null", tarfile.BLKTYPE, (1, 3)),
        ("dev/null", tarfile.CHRTYPE, (1, 1)),  # the machine's memory under another name
        ("dev/mem", tarfile.CHRTYPE, (1, 1)),
        ("./dev//../dev/kmsg", tarfile.CHRTYPE, (1, 11)),
        ("gone", tarfile.CHRTYPE, (0, 0)),  # overlayfs's own mark
    ],
)
def test_a_device_node_is_refused(path: str, kind: bytes, device: tuple[int, int]) -> None:
    reason = refusal(layer(Written(path=path, kind=kind, device=device)))
    assert "is a device node" in reason or "leads out" in reason


def test_the_devices_that_every_runtime_brings_may_be_listed() -> None:
    data = layer("dev/", Written(path="./dev/null", kind=b"3", device=(1, 3)))
    assert [(e.path, e.kind, e.device) for e, _ in read(data)] == [
        ("dev", "dir", "0:0"),
        ("dev/null", "device", "1:3"),
    ]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (raw(info("../x")), "leads out"),
        (raw(info("a/../../x")), "leads out"),
        (raw(info("x", type=tarfile.LNKTYPE, linkname="../x")), "leads out"),
        (raw(info("x", type=tarfile.LNKTYPE)), "links to something that is not a path"),
        (raw(info("x", type=tarfile.SYMTYPE)), "links to something that is not a path"),
        (raw(info("d/" * 300)), "too long for a path"),
        (raw(info("n" * 256)), "too long for a path"),
        (raw(info("x", type=b"V")), "unknown type"),
        (raw(info("x", type=tarfile.GNUTYPE_SPARSE)), "is a sparse file"),
        (raw(info("x"), b"", **{"GNU.sparse.major": "1"}), "is a sparse file"),
        (raw(info("x"), size="-1"), "size is '-1'"),
        (raw(info("x"), size="1e30"), "size is '1e30'"),
        (raw(info("x"), size="9" * 20), "makes it longer than 32 GiB"),
        (raw(info("x"), uid="4294967295"), "an owner that Linux does not know"),
        (raw(info("x"), mtime="nan"), "mtime is 'nan'"),
        (raw(info("x"), path="a\0b"), "NUL"),
        (raw(info("x", size=600), b"short"), "ends in the middle"),
        (raw(info("x"))[:400], "ends in the middle of an entry"),
        (b"\0" * 512 + raw(info("x")), "follows a block of zeros"),
        (changed(raw(info("x")), 124, b"12x"), "size is b'12x"),
        (raw(info("x"))[:100] + b"1" + raw(info("x"))[101:], "checksum does not match"),
        (raw(info("x", type=b"L", size=2 << 20)), "a header has 2,097,152 bytes"),
        (raw(info("x", type=b"x", size=9), b"9 path=ab"), "a PAX header is damaged"),
        (raw(info("x", type=b"x", size=7), b"0 a=bc\n"), "a PAX header is damaged"),
        (raw(info("x", type=b"g", size=11), b"11 path=ab\n"), "a global header sets 'path'"),
        (raw(info("x", type=b"x", size=11), b"11 path=ab\n"), "between a header and its entry"),
        (raw(info("x", type=b"x", size=11), b"11 path=ab\n") * 2, "two PAX headers"),
        (raw(info("x", type=b"x", size=8), b"8 path=\n") + raw(info("y")), "'path' has no value"),
        (raw(info("x", type=b"L", size=1), b"\0") + raw(info("y")), "a long name is empty"),
        (raw(info("x", type=b"K", size=0)) + raw(info("y")), "a long name is empty"),
        (changed(raw(info("x")), 124, b"\0" + b"2" * 10 + b"\0"), "size is b'\\x00222"),
        (changed(raw(info("x")), 100, b"\0" + b"755\0\0\0"), "mode is b'\\x00755"),
        (changed(gnu(info("x")), 345, b"a/b"), "atime is b'a/b"),
        (changed(changed(raw(info("x")), 257, bytes(8)), 345, b"a/b"), "a prefix in a header without one"),
        (raw(info("x", type=b"L", size=2), b"ab") * 2, "two long names"),
        (raw(info("x", type=b"L", size=2), b"ab") + raw(info(), path="y"), "two long names"),
    ],
)
def test_what_no_layer_may_contain_is_refused(data: bytes, reason: str) -> None:
    assert reason in refusal(data)


def test_a_damaged_header_is_not_the_end() -> None:
    """Tarfile stops there without a word, so what follows would be in the image and not in its manifest."""
    data = layer("a", "b", "c")
    assert [e.path for e, _ in read(data)] == ["a", "b", "c"]
    bad = data[:512] + b"\xff" * 512 + data[1024:]
    with tarfile.open(fileobj=io.BytesIO(bad)) as tar:
        assert tar.getnames() == ["a"]
    assert "a header is damaged" in refusal(bad)


def test_a_long_number_costs_no_time() -> None:
    # A megabyte of digits kept tarfile's expression busy for hours.
    data = raw(info("x", type=b"x", size=1 << 20), b"1" * (1 << 20))
    assert "a PAX header is damaged" in refusal(data)


def test_a_comment_for_all_entries_is_no_matter() -> None:
    data = raw(info("x", type=b"g", size=14), b"14 comment=ab\n") + raw(info("y"))
    assert [e.path for e, _ in read(data)] == ["y"]


def test_times_before_1970_and_beyond_are_none() -> None:
    data = b"".join(raw(info("x", mtime=time)) for time in (-5, 1.5, 1 << 40))
    assert [e.mtime for e, _ in read(data)] == [0, 1, 0]


def test_the_whole_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tar_reader, "MOST_BYTES", 4 << 20)
    monkeypatch.setattr(tar_reader, "MOST_ENTRIES", 3)
    assert "makes it longer" in refusal(layer(Written(path="x", content=bytes(5 << 20))))
    assert "more than 3 entries" in refusal(layer("a", "b", "c", "d"))
    # Without end, and two thousand times smaller on the way.
    stream = gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(layer("a") + bytes(5 << 20))))
    with pytest.raises(LayerRefused, match="it is longer than"):
        list(Reader(stream))


def test_all_of_the_tar_is_seen() -> None:
    data = layer(Written(path="x", content=b"x" * 3000), "y") + bytes(9 * 512)
    seen: list[bytes] = []
    for _ in Reader(io.BytesIO(data), seen.append):
        pass
    assert b"".join(seen) == data
