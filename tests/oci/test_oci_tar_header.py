"""Headers are those of tarfile, byte for byte."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reprobuild.oci.tar_header import header
from reprobuild.oci.tar_writer import MTIME

# Bytes that are no UTF-8 come as surrogates, as os.fsdecode gives them.
names = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=300),
    st.binary(min_size=1, max_size=120).map(
        lambda b: b.replace(b"\0", b"-").decode("utf-8", "surrogateescape")
    ),
)


@given(
    name=names,
    kind=st.sampled_from([tarfile.REGTYPE, tarfile.SYMTYPE]),
    mode=st.integers(0, 0o7777),
    size=st.integers(0, 1 << 40),
    target=names | st.just(""),
    uid=st.integers(0, 1 << 32),
    gid=st.integers(0, 1 << 22),
)
@example("a" * 100, tarfile.REGTYPE, 0o644, 8**11 - 1, "", 8**7 - 1, 8**7)
@example("a" * 101, tarfile.REGTYPE, 0o644, 8**11, "b" * 101, 8**7, 0)
@example("é" * 60, tarfile.SYMTYPE, 0o777, 0, "\udcff", 0, 0)
def test_it_is_tarfile_s(
    name: str, kind: bytes, mode: int, size: int, target: str, uid: int, gid: int
) -> None:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.size, info.linkname = kind, mode, size, target
    info.uid, info.gid, info.mtime = uid, gid, MTIME
    wanted = info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
    assert header(name, kind, mode, MTIME, size=size, target=target, uid=uid, gid=gid) == wanted


# The length of a record counts its own digits: 98 and 99 bytes, 998 and 999.
@pytest.mark.parametrize("length", [*range(80, 110), *range(980, 1005)])
def test_tarfile_reads_what_was_written(length: int) -> None:
    name = "é" + "n" * (length - 1)
    with tarfile.open(
        fileobj=io.BytesIO(header(name, tarfile.REGTYPE, 0o600, MTIME) + bytes(1024))
    ) as archive:
        (found,) = archive.getmembers()
    assert (found.name, found.mode, found.mtime, found.size) == (name, 0o600, MTIME, 0)


def test_a_folder() -> None:
    info = tarfile.TarInfo("usr/lib")
    info.type, info.mode, info.mtime = tarfile.DIRTYPE, 0o755, MTIME
    wanted = info.tobuf(tarfile.PAX_FORMAT)
    assert header("usr/lib/", tarfile.DIRTYPE, 0o755, MTIME) == wanted
