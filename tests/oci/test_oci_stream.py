"""Archives that go by without a second copy."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

from reprobuild.oci.file_tree import read_tree
from reprobuild.oci.store import ImageStore
from reprobuild.oci.stream import archive_members
from support.archived import write
from support.fixtures import fixtures_of

globals().update(fixtures_of("support.archived"))


def test_layers_in_gzip(store: ImageStore, digest: str, tmp_path: Path) -> None:
    """The same files and the same configuration, for readers without zstd."""
    file = write(store, digest, tmp_path / "a.tar", compression="gzip")
    with tarfile.open(file, "r:") as tar:
        members = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}  # type: ignore[union-attr]
    [entry] = json.loads(members["index.json"])["manifests"]
    manifest = json.loads(members[f"blobs/sha256/{entry['digest'][7:]}"])
    assert manifest["config"] == store.manifest(digest)["config"]
    assert manifest["annotations"] == store.manifest(digest)["annotations"]
    for described in manifest["layers"]:
        data = members[f"blobs/sha256/{described['digest'][7:]}"]
        assert described["mediaType"] == "application/vnd.oci.image.layer.v1.tar+gzip"
        assert (described["size"], data[:2], data[4:8]) == (len(data), b"\x1f\x8b", bytes(4))
    with file.open("rb") as archive:
        found = read_tree(archive_members(archive), "it")
    assert found.digest == store.tree(digest, "it", lambda *_: False).digest
    assert write(store, digest, tmp_path / "b.tar", compression="gzip").read_bytes() == file.read_bytes()
