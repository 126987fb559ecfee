"""One tar archive of all layers, for tools that cannot read layers."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.errors import ImageError, StorageError
from reprobuild.oci.documents import sha256
from support.disk import make_unreadable
from support.flat_archives import ABOVE, BELOW, LINKED, blobs, flat


def test_the_root_is_what_a_container_sees(tmp_path: Path) -> None:
    found = flat(blobs(tmp_path, BELOW, ABOVE))
    kinds = {path: record.kind for path, record in found.files.items()}
    folders = dict.fromkeys(("etc", "deep", "deep/er"), "dir")
    files = dict.fromkeys(("etc/stays", "first", "second", "third", "folder", "ping", "deep/er/new"), "file")
    assert kinds == folders | files | {"link": "link", "fifo": "other"}
    assert (found.files["etc/stays"].mode, found.files["etc/stays"].owner) == (0o4755, "70000:0")
    # Second names of a file that the layer above has replaced keep what they had.
    assert found.files["second"].content == found.files["third"].content == sha256(b"one")[7:]
    assert found.files["first"].content == sha256(b"another")[7:]
    assert found.files["link"].content == LINKED
    assert found.files["ping"].attributes == f"user.note={b'kept'.hex()}"


def test_a_layer_that_is_damaged_or_gone(tmp_path: Path) -> None:
    (path, diff_id), *_ = blobs(tmp_path, BELOW)
    for harm in (BELOW[:-1024] + b"\0" * 512, BELOW.replace(b"one", b"two"), b"x"):
        path.write_bytes(harm)
        with pytest.raises(ImageError, match="the image store is damaged"):
            flat([(path, diff_id)])
        assert not path.exists()
    with pytest.raises(ImageError, match="it is missing"):
        flat([(path, diff_id)])


def test_a_layer_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path, diff_id), *_ = blobs(tmp_path, BELOW)
    make_unreadable(path, monkeypatch)
    with pytest.raises(StorageError, match=f"{path}: Input/output error"):
        flat([(path, diff_id)])
