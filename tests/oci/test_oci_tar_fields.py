"""Fields of a tar's headers."""

from __future__ import annotations

import tarfile

import pytest

from support.images import Entry as Written
from support.images import layer
from support.tar_blocks import changed, info, read, refusal


def raw(info: tarfile.TarInfo, content: bytes = b"", **pax: str) -> bytes:
    """An entry with any header, also one that tarfile would not write for that content."""
    info.pax_headers = pax
    return info.tobuf(tarfile.PAX_FORMAT) + content + bytes(-len(content) % 512)


def gnu(info: tarfile.TarInfo) -> bytes:
    return info.tobuf(tarfile.GNU_FORMAT)


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
