"""One image as a folder: read by Skopeo, and gone afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import needs
from reprobuild.host import process
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.oci.single_image_layout import alone
from reprobuild.oci.store import ImageStore
from support.small_root import small_image


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(Host(Home(tmp_path / "home"), Console(quiet=True)))


def test_the_folder_has_one_image_and_no_copy_of_it(store: ImageStore) -> None:
    digest = small_image(store.home)
    with alone(store, store.find(digest)) as folder:
        [entry] = json.loads((folder / "index.json").read_bytes())["manifests"]
        assert entry["digest"] == digest
        assert "annotations" not in entry
        assert (folder / "blobs").resolve() == store.folder / "blobs"
    assert not folder.exists()
    assert store.blob(digest).exists(), "what the folder pointed to is left alone"


@pytest.mark.engines
def test_skopeo_reads_it(store: ImageStore, tmp_path: Path) -> None:
    needs("skopeo")
    digest = small_image(store.home)
    with alone(store, store.find(digest)) as folder:
        facts = json.loads(process.run(["skopeo", "inspect", f"oci:{folder}"]).stdout)
        process.run(["skopeo", "copy", "--quiet", f"oci:{folder}", f"dir:{tmp_path / 'copy'}"])
    assert facts["Digest"] == digest
