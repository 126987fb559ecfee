"""The bytes of a layer: golden digests, and nothing of the machine, the hour or the user in them."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from reprobuild.oci.tar_writer import MTIME, Layer, LayerWriter, Record, parents

LONG = "opt/" + "a" * 60 + "/" + "b" * 120 + "/file.txt"
SMALL = """
import io, sys
from reprobuild.oci.tar_writer import LayerWriter
out = io.BytesIO()
writer = LayerWriter(out)
writer.folder("opt")
writer.folder("opt/secret", 0o700, uid=7, gid=8)
writer.link("opt/link", "../usr/bin/python3.11")
writer.file("opt/empty", 0o644, 0, [])
writer.file("opt/n\\u00e9w \\u6587.txt", 0o4755, 5, [b"he", b"llo"], uid=3, gid=4)
writer.file("opt/zeros", 0o600, 3 << 20, [bytes(1 << 20)] * 3)
writer.file("LONG", 0o644, 1, [b"x"])
layer = writer.close()
print(layer.diff_id, layer.digest, layer.size)
""".replace("LONG", LONG)

GOLDEN = (
    "sha256:171be99e6d383e07f8052be36aa9f3233def752fa61839616773130eefc86747"
    " sha256:3b793b6e7e13fcb3c68ed7352665269eaee43a1fa9e6d36e2997e67befb23023 544"
)
"""Digest of the tar, digest and size of the blob."""


def write(fill: Callable[[LayerWriter], object]) -> tuple[Layer, bytes, list[Record]]:
    """Return a layer, its tar and its records."""
    out = io.BytesIO()
    writer = LayerWriter(out)
    fill(writer)
    layer = writer.close()
    assert layer.digest == "sha256:" + hashlib.sha256(out.getvalue()).hexdigest()
    assert layer.size == len(out.getvalue())
    tar = zstandard.ZstdDecompressor().decompressobj().decompress(out.getvalue())
    assert layer.diff_id == "sha256:" + hashlib.sha256(tar).hexdigest()
    return layer, tar, writer.records


def run_small(**env: str) -> str:
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-c", SMALL],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": path, **env},
        cwd=env.get("HOME", "/"),
        umask=int(env.get("MASK", "022"), 8),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_a_layer_s_bytes_never_change() -> None:
    """If this fails, raise FORMAT in oci/tar_writer.py: what is cached under the old keys differs."""
    assert run_small() == GOLDEN


@pytest.mark.parametrize(
    "env",
    [
        {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONHASHSEED": "1", "MASK": "077"},
        {"TZ": "America/Lima", "LANG": "tr_TR.UTF-8", "PYTHONHASHSEED": "12345", "MASK": "000"},
        {"HOME": "/usr", "USER": "somebody", "PYTHONUTF8": "0", "LC_ALL": "POSIX", "SOURCE_DATE_EPOCH": "1"},
    ],
)
def test_the_surroundings_leave_no_trace(env: dict[str, str]) -> None:
    assert run_small(**env) == GOLDEN


def test_what_a_reader_finds() -> None:
    def fill(writer: LayerWriter) -> None:
        writer.folder("opt")
        writer.file("opt/run", 0o4755, 2, [b"hi"], uid=5, gid=6)
        writer.link("opt/l", "run")

    _, tar, _ = write(fill)
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        found = [(m.name, m.type, oct(m.mode), m.uid, m.gid, m.mtime, m.uname, m.gname) for m in archive]
        assert found == [
            ("opt", tarfile.DIRTYPE, "0o755", 0, 0, MTIME, "", ""),
            ("opt/run", tarfile.REGTYPE, "0o4755", 5, 6, MTIME, "", ""),
            ("opt/l", tarfile.SYMTYPE, "0o777", 0, 0, MTIME, "", ""),
        ]
        assert archive.getmember("opt/l").linkname == "run"


def test_records_tell_what_the_manifest_needs() -> None:
    def fill(writer: LayerWriter) -> None:
        writer.folder("a", 0o700, uid=1, gid=2)
        writer.link("a/l", "x y")
        assert hashlib.sha256(b"abc").hexdigest() == writer.file("a/f", 0o640, 3, [b"a", b"", b"bc"], gid=9)

    _, _, records = write(fill)
    assert [
        Record("a", "dir", 0o700, "-", "1:2"),
        Record("a/l", "link", 0o777, "x y"),
        Record("a/f", "file", 0o640, hashlib.sha256(b"abc").hexdigest(), "0:9"),
    ] == records


@pytest.mark.parametrize(
    ("path", "pax"),
    [
        ("opt/short", False),
        ("a" * 100, False),
        ("a" * 101, True),
        ("opt/é", True),
        (LONG, True),
        ("x/" * 200 + "y", True),
    ],
)
def test_pax_headers_stand_only_where_a_name_needs_one(path: str, pax: bool) -> None:
    _, tar, _ = write(lambda writer: writer.file(path, 0o644, 1, [b"x"]))
    assert pax == (tar[156:157] == tarfile.XHDTYPE)
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        assert [path] == archive.getnames()


def test_a_name_that_is_no_utf8_comes_through() -> None:
    name = os.fsdecode(b"opt/\xff\xfe")
    _, tar, _ = write(lambda writer: writer.file(name, 0o644, 1, [b"x"]))
    with tarfile.open(fileobj=io.BytesIO(tar), errors="surrogateescape") as archive:
        assert [name] == archive.getnames()


@pytest.mark.parametrize("chunks", [[], [b"ab"], [b"abc", b"d"]])
def test_a_file_of_another_size_than_said_is_refused(chunks: list[bytes]) -> None:
    with pytest.raises(ValueError, match=r"a has \d bytes, not 3"):
        LayerWriter(io.BytesIO()).file("a", 0o644, 3, chunks)


@given(st.lists(st.binary(max_size=2000), max_size=5))
def test_how_a_file_is_cut_does_not_matter(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    one = write(lambda writer: writer.file("f", 0o644, len(whole), [whole]))
    assert one == write(lambda writer: writer.file("f", 0o644, len(whole), chunks))


def test_the_writer_takes_a_disk_that_takes_little() -> None:
    class Slow(io.BytesIO):
        def write(self, data: object) -> int:
            assert isinstance(data, memoryview)
            return super().write(data[:1000])

    out, whole = Slow(), io.BytesIO()
    data = os.urandom(300_000)
    for target in (out, whole):
        writer = LayerWriter(target)
        writer.file("f", 0o644, len(data), [data])
        layer = writer.close()
        assert layer.digest == "sha256:" + hashlib.sha256(target.getvalue()).hexdigest()
    assert out.getvalue() == whole.getvalue()


def test_parents_come_before_what_is_in_them() -> None:
    assert parents(["a/b/c", "a/d", "e"]) == ["a", "a/b"]
    assert parents([]) == []


def test_gnu_tar_reads_it(tmp_path: Path) -> None:
    _, tar, _ = write(lambda writer: writer.file(LONG, 0o644, 1, [b"x"]))
    done = subprocess.run(["tar", "-tf", "-"], input=tar, capture_output=True, check=True)
    assert done.stdout.decode().splitlines() == [LONG]
