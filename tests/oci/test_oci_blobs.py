"""The blobs that the layer cache and the image store share."""

from __future__ import annotations

from pathlib import Path

from reprobuild.host.home import Home
from reprobuild.oci.blobs import Blobs
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
