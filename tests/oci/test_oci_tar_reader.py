"""A layer's tar: what tarfile writes is read as tarfile does; what means harm, or two things, is refused."""

from __future__ import annotations

import contextlib
import gzip
import io
import tarfile

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reprobuild.oci import tar_reader
from reprobuild.oci.tar_fields import LayerRefused
from reprobuild.oci.tar_reader import Reader
from support.images import Entry as Written
from support.images import layer
from support.tar_blocks import changed, info, read, refusal

parts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0/"), min_size=1, max_size=80)
paths = st.lists(parts.filter(lambda p: p not in (".", "..")), min_size=1, max_size=5).map("/".join)


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


@pytest.mark.parametrize(
    "name",
    [
        *("trusted.overlay.opaque", "trusted.overlay.redirect", "trusted.overlay.metacopy"),
        *("trusted.overlay.whiteout", "trusted.overlay.overlay.opaque", "user.overlay.opaque"),
        *("user.overlay.redirect", "user.fuseoverlayfs.opaque", "trusted.overlay.originx"),
    ],
)
def test_what_shows_other_files_once_the_layer_is_mounted_is_refused(name: str) -> None:
    """Docker and Podman unpack it: a folder of the image is another one then."""
    folder = Written(path="usr/lib/", kind=b"5", attributes={name: "/opt/evil"})
    assert f"'usr/lib' has the attribute {name!r}" in refusal(layer(folder))


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


def test_a_damaged_header_is_not_the_end() -> None:
    """Tarfile stops there without a word, so what follows would be in the image and not in its manifest."""
    data = layer("a", "b", "c")
    assert [e.path for e, _ in read(data)] == ["a", "b", "c"]
    bad = data[:512] + b"\xff" * 512 + data[1024:]
    with tarfile.open(fileobj=io.BytesIO(bad)) as tar:
        assert tar.getnames() == ["a"]
    assert "a header is damaged" in refusal(bad)


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
