from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from reprobuild.oci.extract_file import file_of_layers, file_of_tar
from reprobuild.oci.tar_fields import LayerRefused
from support.images import PACK, Entry, layer

FILE = Entry(path="d/e/f", content=b"1")
FOLDER, LINK, HARD = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE


def blobs(folder: Path, *layers: bytes) -> list[Path]:
    """Write layers, the lowest first; return them with the uppermost first."""
    found = []
    for data in layers:
        path = folder / hashlib.sha256(data).hexdigest()
        path.write_bytes(data)
        found.append(path)
    return found[::-1]


@pytest.mark.parametrize(
    ("above", "content"),
    [
        ([], b"1"),
        (["d/e/h", ".wh.x", "d/e/.wh.g"], b"1"),
        ([Entry(path="d/e/f", content=b"2")], b"2"),
        ([Entry(path="d/e/g", content=b"3"), Entry(path="d/e/f", kind=HARD, target="d/e/g")], None),
        ([Entry(path="d/e/f", kind=LINK, target="g"), Entry(path="d/e/g", content=b"3")], None),
        ([Entry(path="d/e/f", kind=FOLDER, mode=0o755)], None),
        (["d/e/.wh.f"], None),
        (["d/.wh.e"], None),
        ([".wh.d"], None),
        (["d/.wh..wh..opq"], None),
        ([Entry(path="d/e", kind=LINK, target="/elsewhere")], None),
    ],
)
def test_a_file_is_that_of_the_uppermost_layer(
    tmp_path: Path, above: list[Entry | str], content: bytes | None
) -> None:
    every = blobs(tmp_path, PACK["zstd"](layer(FILE)), PACK["gzip"](layer(*above)))
    assert file_of_layers(every, "d/e/f") == content


def test_a_layer_below_is_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / ("0" * 64)).write_bytes(b"damaged")
    assert file_of_layers([*blobs(tmp_path, layer(FILE)), tmp_path / ("0" * 64)], "d/e/f") == b"1"
    with pytest.raises(LayerRefused, match="its content has another hash"):
        file_of_layers([tmp_path / ("0" * 64)], "d/e/f")


def test_a_tar_of_one_file() -> None:
    def read(*entries: Entry | str) -> bytes | None:
        return file_of_tar(io.BytesIO(layer(*entries)), "f")

    assert read(Entry(path="f", content=b"1")) == b"1"
    assert read(Entry(path="f", kind=LINK, target="/etc/shadow")) is None
    assert read("f/", "f/f") is None
    assert read() is None
