"""``export``: an archive, or nothing."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.commands import Call  # pytest itself imports the plugin
from support.small_images import NAME

pytest_plugins = ["support.commands", "support.small_images"]


def test_export_writes_an_archive_or_nothing(small_digest: str, call: Call, folder: Path) -> None:
    said = call("export", NAME, "torch.tar")
    assert said.status == 0
    assert said.out.startswith(f"torch.tar: {NAME}, {small_digest}, ")
    with tarfile.open("torch.tar") as tar:
        assert "oci-layout" in tar.getnames()
    first = Path("torch.tar").read_bytes()
    call("export", small_digest, "again.tar")
    assert Path("again.tar").read_bytes() == first
    said = call("export", NAME, "torch.tar", "--format", "squashfs", "--compression", "gzip")
    assert (said.status, said.out) == (2, "")
    assert "--compression is of the layers of an OCI archive" in said.err
    said = call("export", NAME, "no/such/folder.tar")
    assert (said.status, said.out) == (11, "")
    names = ("again.tar", "again.tar.evidence.jsonl", "torch.tar", "torch.tar.evidence.jsonl")
    assert sorted(path.name for path in folder.iterdir()) == list(names)
