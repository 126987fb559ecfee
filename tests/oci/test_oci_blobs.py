"""The blobs that the layer cache and the image store share."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from reprobuild.host import verified
from reprobuild.host.home import Home
from reprobuild.oci.blobs import Blobs, fault_of
from reprobuild.oci.documents import sha256


def test_a_file_is_taken_or_shared_under_its_digest(tmp_path: Path) -> None:
    blobs = Blobs(Home(tmp_path / "home"))
    taken, shared = tmp_path / "home/oci/taken", tmp_path / "home/oci/shared"
    for file in (taken, shared):
        file.write_bytes(file.name.encode())
    blobs.take(taken, sha256(b"taken"))
    blobs.share(shared, sha256(b"shared"))
    blobs.share(shared, sha256(b"shared"))
    assert not taken.exists()
    assert shared.read_bytes() == b"shared"
    found = {file.name: (file.read_bytes(), file.stat().st_mode & 0o777) for file in blobs.folder.iterdir()}
    assert found == {sha256(data)[7:]: (data, 0o444) for data in (b"taken", b"shared")}


def test_all_but_some_are_removed(tmp_path: Path) -> None:
    blobs = Blobs(Home(tmp_path))
    for data in (b"kept", b"gone", b"left"):
        blobs.path(sha256(data)).write_bytes(data)
    assert blobs.keep_only({sha256(b"kept")}, []) == 8
    assert [file.read_bytes() for file in blobs.folder.iterdir()] == [b"kept"]


def test_one_that_the_disk_does_not_give_is_made_again_and_may_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`image` said "unchanged" for it, by its stamp, while each command that reads it failed."""

    def lost(path: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    blobs, file, digest = Blobs(Home(tmp_path)), tmp_path / "oci" / "a", sha256(b"a")
    file.write_bytes(b"a")
    blobs.take(file, digest)
    with monkeypatch.context() as disk:
        disk.setattr(verified, "open_regular", lost)
        assert blobs.fault(digest) is None
        said = fault_of(blobs.path(digest))
        assert said == "the disk does not give it any more (Input/output error)"
        assert blobs.fault(digest) == said
    assert blobs.fault(digest) is None
