"""The archive of an image: the same bytes each time, whole or not there, and read by Skopeo and Podman."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Literal, get_args

import pytest

from conftest import needs
from reprobuild.errors import ImageError, StorageError
from reprobuild.host import process
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.host.outputs import one_writer
from reprobuild.oci.archive import write_docker
from reprobuild.oci.documents import ImageDocuments
from reprobuild.oci.file_tree import nothing
from reprobuild.oci.recompress import Compression, packed
from reprobuild.oci.store import ImageStore
from support.archived import CONSOLE, NAME, write
from support.disk import make_unreadable, remove_folder, tiny_disk
from support.fixtures import fixtures_of
from support.hearing import Hearing
from support.small_root import small_image

globals().update(fixtures_of("support.archived"))


def test_the_archive_is_an_oci_layout_with_all_blobs(store: ImageStore, digest: str, tmp_path: Path) -> None:
    with tarfile.open(write(store, digest, tmp_path / "a.tar"), "r:") as tar:
        members = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}  # type: ignore[union-attr]
        facts = {(m.mode, m.mtime, m.uid, m.gid, m.uname, m.gname) for m in tar if m.isfile()}
        # syft 1.18 reads no file whose folder is not a member before it.
        assert [m.name for m in tar if m.isdir()] == ["blobs", "blobs/sha256"]
        assert tar.getnames()[4:] == sorted(name for name in members if name.startswith("blobs/"))
    assert facts == {(0o644, 315532800, 0, 0, "", "")}
    assert json.loads(members.pop("oci-layout")) == {"imageLayoutVersion": "1.0.0"}
    index = json.loads(members.pop("index.json"))
    [entry] = index["manifests"]
    assert (entry["digest"], entry["size"]) == (digest, len(members[f"blobs/sha256/{digest[7:]}"]))
    assert entry["annotations"] == {"org.opencontainers.image.ref.name": NAME}
    for path, data in members.items():
        assert path == f"blobs/sha256/{hashlib.sha256(data).hexdigest()}"
    assert {f"sha256:{path[13:]}" for path in members} == store.used_blobs()


def test_the_same_image_gives_the_same_file(store: ImageStore, digest: str, tmp_path: Path) -> None:
    first = write(store, digest, tmp_path / "a.tar")
    other = Home(tmp_path / "elsewhere")
    second = write(ImageStore(Host(other, CONSOLE)), small_image(other), tmp_path / "b.tar")
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes() != write(store, digest, tmp_path / "c.tar", "team/other:1").read_bytes()


def test_an_older_file_is_replaced_as_a_whole(store: ImageStore, digest: str, tmp_path: Path) -> None:
    file = tmp_path / "a.tar"
    file.write_text("older")
    write(store, digest, file)
    assert tarfile.is_tarfile(file)
    assert {path.name for path in tmp_path.iterdir()} == {"a.tar", "home"}


def test_two_exports_to_one_path_take_turns(store: ImageStore, digest: str, tmp_path: Path) -> None:
    file = tmp_path / "a.tar"
    store.console = console = Hearing()
    with ThreadPoolExecutor(1) as pool:
        with one_writer(file, CONSOLE) as other:
            other.write_bytes(b"half")
            second = pool.submit(write, store, digest, file)
            assert console.said.wait(60)
            other.write_bytes(b"whole")
        second.result()
    assert file.read_bytes() == write(store, digest, tmp_path / "b.tar").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"a.tar", "b.tar", "home"}


def test_an_older_docker_gets_layers_in_gzip_as_all_others(
    store: ImageStore, digest: str, tmp_path: Path
) -> None:
    """Those of a base image come so; inflated, they are what the configuration says."""
    with packed(store, store.find(digest), "gzip") as found:
        for blob, path in found.blobs.items():
            if not store.blob(blob).exists():
                shutil.copy(path, store.blob(blob))
        config = store.blob(store.manifest(digest)["config"]["digest"]).read_bytes()
        other = store.add(ImageDocuments(manifest=found.manifest.read_bytes(), config=config))
    assert other != digest
    written = []
    for each in (digest, other):
        with (tmp_path / each[7:]).open("w+b") as file:
            write_docker(store, store.find(each), file)
            file.seek(0)
            written.append(file.read())
    assert written[0] == written[1]
    with tarfile.open(tmp_path / other[7:]) as tar:
        for _, diff_id in store.layers(other):
            layer = tar.extractfile(f"{diff_id[7:]}.tar")
            assert layer is not None
            assert hashlib.sha256(layer.read()).hexdigest() == diff_id[7:]


@pytest.mark.parametrize("compression", get_args(Compression))
@pytest.mark.parametrize("harm", ["gone", "changed", "cut", "grown"])
def test_a_damaged_layer_is_not_handed_on(
    store: ImageStore, digest: str, tmp_path: Path, harm: str, compression: Compression
) -> None:
    blob, _ = store.layers(digest)[-1]
    data = bytearray(blob.read_bytes())
    blob.unlink()
    if harm == "changed":
        data[len(data) // 2] ^= 1
    if harm != "gone":
        blob.write_bytes(data[:-1] if harm == "cut" else data + b"x" if harm == "grown" else data)
    file = tmp_path / "a.tar"
    file.write_text("older")
    with pytest.raises(ImageError, match=f"the image store is damaged: sha256:{blob.name}") as caught:
        write(store, digest, file, compression=compression)
    assert "`reprobuild image`" in caught.value.hint
    assert not blob.exists()
    assert file.read_text() == "older"
    assert {path.name for path in tmp_path.iterdir()} == {"a.tar", "home"}


@pytest.mark.parametrize("way", [*get_args(Compression), "docker"])
def test_a_blob_that_cannot_be_read_is_named(
    store: ImageStore,
    digest: str,
    tmp_path: Path,
    way: Compression | Literal["docker"],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not the folder of the archive, on which nothing is wrong."""
    blob, _ = store.layers(digest)[-1]
    make_unreadable(blob, monkeypatch)
    hand_out: Callable[[], object] = partial(write_docker, store, store.find(digest), BytesIO())
    if way != "docker":
        hand_out = partial(write, store, digest, tmp_path / "a", compression=way)
    with pytest.raises((StorageError, ImageError), match=rf"{blob.name}: .*Input/output error"):
        hand_out()
    assert {path.name for path in tmp_path.iterdir()} == {"home"}


def test_a_blob_whose_files_cannot_be_read_is_named(
    store: ImageStore, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    blob, _ = store.layers(digest)[-1]
    make_unreadable(blob, monkeypatch)
    with pytest.raises(ImageError, match=rf"{blob.name}: the disk does not give it any more \(Input/output"):
        store.tree(digest, "team/one:1", nothing)


@pytest.mark.core
def test_a_full_disk(store: ImageStore, digest: str, tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "small", 1 << 20) as small:
        with pytest.raises(StorageError, match="No space left on device"):
            write(store, digest, small / "a.tar")
        assert [*small.iterdir()] == []


# --- others read it ---


@pytest.mark.engines
@pytest.mark.parametrize("compression", get_args(Compression))
def test_skopeo_reads_it(store: ImageStore, digest: str, tmp_path: Path, compression: Compression) -> None:
    needs("skopeo")
    file = write(store, digest, tmp_path / "a.tar", compression=compression)
    facts = json.loads(process.run(["skopeo", "inspect", f"oci-archive:{file}"]).stdout)
    if compression == "zstd":
        assert facts["Digest"] == digest
    assert facts["Labels"]["dev.reprobuild.cuda"] == "12.1.105"
    # A copy checks every blob against its digest, and every layer against its diff_id.
    copy = tmp_path / "copy"
    process.run(["skopeo", "copy", "--quiet", f"oci-archive:{file}", f"dir:{copy}"])
    assert f"sha256:{hashlib.sha256((copy / 'manifest.json').read_bytes()).hexdigest()}" == facts["Digest"]


Podman = Callable[..., str]


@pytest.fixture
def podman() -> Iterator[Podman]:
    """Call podman with a storage of its own, which is gone afterwards."""
    needs("podman")
    needs("runc")
    # The driver without mounts, so that nothing is left behind.
    folder = Path(tempfile.mkdtemp(prefix="podman.", dir="/var/tmp"))  # podman wants a short path
    own = ["--root", str(folder / "root"), "--runroot", str(folder / "run")]
    own += ["--storage-driver", "vfs", "--events-backend", "none"]
    # runc, since crun refuses a host with both versions of control groups.
    command = ["podman", *own, "--cgroup-manager", "cgroupfs", "--runtime", "runc"]

    def call(*argv: str) -> str:
        return process.run([*command, *argv]).stdout.decode()

    try:
        yield call
    finally:
        subprocess.run([*command, "rm", "--all", "--force"], check=False, capture_output=True)
        # Podman still clears up after the container for a moment.
        deadline = time.monotonic() + 20
        while folder.exists() and time.monotonic() < deadline:
            with suppress(OSError):
                remove_folder(folder)
        assert not folder.exists()


def podman_runs(podman: Podman, image: str, *argv: str) -> str:
    # Low limits: podman's own are higher than a container may set that the tests run in.
    limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000"]
    return podman("run", "--rm", "--network", "none", *limits, image, *argv)


@pytest.mark.engines
def test_podman_loads_and_runs_the_archive(
    store: ImageStore, digest: str, tmp_path: Path, podman: Podman
) -> None:
    file = write(store, digest, tmp_path / "a.tar")
    said = podman("load", "--input", str(file))
    assert f"localhost/{NAME}" in said or NAME in said
    [facts] = json.loads(podman("image", "inspect", NAME))
    assert facts["Digest"] == digest
    assert facts["Id"] == store.manifest(digest)["config"]["digest"][7:]
    # The image's own command, and one of ours with its environment.
    assert podman_runs(podman, NAME) == "above\n"
    assert "OMP_NUM_THREADS=1\n" in podman_runs(podman, NAME, "env")


@pytest.mark.engines
def test_podman_runs_the_layout_itself(store: ImageStore, digest: str, podman: Podman) -> None:
    store.name(digest, NAME)
    podman("pull", "--quiet", f"oci:{store.folder}:{NAME}")
    [image] = json.loads(podman("images", "--format", "json"))
    assert image["Digest"] == digest
    assert podman_runs(podman, image["Id"], "bash", "-c", "cat /etc/who; id -u") == "above\n0\n"
