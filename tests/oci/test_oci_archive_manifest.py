"""Archives that say one thing and hold another, each as a file that a stranger could hand over."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from reprobuild.errors import ImageError
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.oci.documents import INDEX_TYPE, MANIFEST_TYPE
from reprobuild.oci.file_tree import ImageTree
from reprobuild.verify.find import tree_of
from support.images import Entry, docker_archive, layer, layout, oci_archive

GOOD = layer(Entry(path="etc/a", content=b"good"))
EVIL = layer(Entry(path="etc/a", content=b"evil"))
Parts = dict[str, bytes]


def tree(place: Path, tmp_path: Path) -> ImageTree:
    return tree_of(str(place), Host(Home(tmp_path / "home"), Console(quiet=True)))


def refused(place: Path, tmp_path: Path, match: str) -> None:
    with pytest.raises(ImageError, match=match):
        tree(place, tmp_path)


def parts_of(file: Path) -> Parts:
    with tarfile.open(file) as tar:
        return {m.name.removeprefix("./"): tar.extractfile(m).read() for m in tar if m.isfile()}  # type: ignore[union-attr]


def write(file: Path, *parts: Mapping[str, bytes]) -> Path:
    with tarfile.open(file, "w") as tar:
        for name, data in (item for each in parts for item in each.items()):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file


def oci(tmp_path: Path, data: bytes, name: str = "x:1", config: Mapping[str, Any] | None = None) -> Parts:
    folder = layout(
        tmp_path / f"oci-{hashlib.sha256(data).hexdigest()[:6]}-{name}", {name: ([data], config or {})}
    )
    return parts_of(oci_archive(folder.with_suffix(".tar"), folder))


def docker(tmp_path: Path, data: bytes) -> Parts:
    return parts_of(docker_archive(tmp_path / "docker.tar", [data], {}))


def blob(parts: Parts, content: bytes) -> str:
    digest = hashlib.sha256(content).hexdigest()
    parts[f"blobs/sha256/{digest}"] = content
    return f"sha256:{digest}"


def test_both_descriptions_of_one_image(tmp_path: Path) -> None:
    """As Docker 25 and newer write."""
    both = write(tmp_path / "a.tar", oci(tmp_path, GOOD), docker(tmp_path, GOOD))
    assert tree(both, tmp_path).files.keys() == {"etc", "etc/a"}


@pytest.mark.parametrize("first", ["manifest.json", "index.json"])
def test_a_clean_description_beside_an_evil_one(tmp_path: Path, first: str) -> None:
    clean, evil = (GOOD, EVIL) if first == "manifest.json" else (EVIL, GOOD)
    both = write(tmp_path / "a.tar", docker(tmp_path, clean), oci(tmp_path, evil))
    refused(both, tmp_path, "describe different images")


def test_a_layer_that_is_not_what_its_digest_says(tmp_path: Path) -> None:
    parts = oci(tmp_path, GOOD)
    name = next(name for name, data in parts.items() if data == GOOD)
    refused(write(tmp_path / "a.tar", {**parts, name: EVIL}), tmp_path, f"{name} does not have the bytes")
    longer = {**parts, name: GOOD + bytes(512)}
    refused(write(tmp_path / "b.tar", longer), tmp_path, "does not have the bytes")


def test_the_same_in_a_layout(tmp_path: Path) -> None:
    folder = layout(tmp_path / "oci", {"x:1": ([GOOD], {})})
    path = next(p for p in (folder / "blobs/sha256").iterdir() if p.read_bytes() == GOOD)
    path.write_bytes(EVIL)
    refused(folder, tmp_path, "does not have the bytes")
    path.unlink()
    os.mkfifo(path)
    refused(folder, tmp_path, "not a regular file")


def test_a_docker_archive_s_layer_that_its_configuration_does_not_list(tmp_path: Path) -> None:
    parts = docker(tmp_path, GOOD)
    refused(write(tmp_path / "a.tar", {**parts, "0/layer.tar": EVIL}), tmp_path, "its layers are not those")


def test_a_configuration_of_another_digest(tmp_path: Path) -> None:
    parts = docker(tmp_path, GOOD)
    parts["f" * 64 + ".json"] = parts.pop("config.json")
    parts["manifest.json"] = parts["manifest.json"].replace(b"config.json", b"f" * 64 + b".json")
    refused(write(tmp_path / "a.tar", parts), tmp_path, "has the bytes of sha256:")


def test_a_file_that_is_there_twice(tmp_path: Path) -> None:
    parts = docker(tmp_path, GOOD)
    again = {"manifest.json": parts["manifest.json"]}
    refused(write(tmp_path / "a.tar", parts, again), tmp_path, "manifest.json is listed more than once")


def test_an_index_that_holds_itself(tmp_path: Path) -> None:
    """Not by its digest, which nobody can make, but by very many of them."""
    parts = oci(tmp_path, GOOD)
    for _ in range(1100):
        inner = json.loads(parts["index.json"])
        inner["manifests"][0] |= {"digest": blob(parts, parts["index.json"])}
        inner["manifests"][0].pop("size", None)
        parts["index.json"] = json.dumps(inner).encode()
    refused(write(tmp_path / "a.tar", parts), tmp_path, "nested too deeply")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda c: c["config"].update(Env=5), r"config\.Env: expected an array"),
        (lambda c: c["config"].update(Env=[5]), r"config\.Env\[0\]: expected a string"),
        (lambda c: c["config"].update(Env={"A": "1"}), r"config\.Env: expected an array"),
        (lambda c: c["config"].update(Labels=["a"]), r"config\.Labels: expected an object"),
        (lambda c: c["config"].update(Labels={"a": 1}), r"config\.Labels\.a: expected a string"),
        (lambda c: c["config"].update(Cmd="sh"), r"config\.Cmd: expected an array"),
        (lambda c: c["config"].update(env=["LD_PRELOAD=/x"]), "env is written Env"),
        (lambda c: c["config"].update({"U\u017fer": "0"}), "U\u017fer is written User"),
        (lambda c: c["rootfs"].update(Diff_IDs=[]), "keys diff_ids and Diff_IDs are one"),
        (lambda c: c.update(OS="linux"), "OS is written os"),
        (lambda c: c.update(config=[1]), "config: expected an object"),
        (lambda c: c.update(rootfs=5), r"config\.json\.rootfs: expected an object"),
        (lambda c: c.pop("rootfs"), r"config\.json\.rootfs: missing"),
        (lambda c: c["rootfs"].update(diff_ids=[]), "its layers are not those"),
        (lambda c: c["rootfs"].update(diff_ids=5), r"rootfs\.diff_ids: expected an array"),
    ],
)
def test_a_configuration_of_wrong_types(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], match: str
) -> None:
    parts = docker(tmp_path, GOOD)
    config = json.loads(parts["config.json"])
    change(config)
    parts["config.json"] = json.dumps(config).encode()
    refused(write(tmp_path / "a.tar", parts), tmp_path, match)


@pytest.mark.parametrize(
    ("document", "match"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b'{"manifests":[],"manifests":[]}', "listed more than once"),
        (b'{"manifests":5}', r"index\.json\.manifests: expected an array"),
        (b'{"manifests":[{"digest":"sha256:../../etc"}]}', r"manifests\[0\]\.digest: .* is not a digest"),
        (b'{"manifests":[{"digest":5}]}', r"manifests\[0\]\.digest: expected a string"),
        (b'{"manifests":[5]}', r"manifests\[0\]: expected an object"),
        (b'{"Manifests":[]}', "is written manifests"),
        (b'{"manifests":[],"layers":[]}', "a manifest and an index in one"),
        (b'{"manifests":[],"Manifests":[]}', "are one to some tools"),
        (b'{"manifests":[{"digest":"sha256:","Digest":"sha256:"}]}', "keys digest and Digest are one"),
        (
            '{"manifests":[],"a":[{"layers":[],"layer\u017f":[]}]}'.encode(),
            "keys layers and layer\u017f are one",
        ),
        ('{"manifests":[{"dige\u017ft":"sha256:"}]}'.encode(), "dige\u017ft is written digest"),
        (b'{"manifests":[{"digest":"x","Size":1}]}', "Size is written size"),
        (b'{"manifests":[{"digest":"x","platform":{"OS":"unknown"}}]}', "OS is written os"),
        (b"{" + b" " * (5 << 20) + b"}", "longer than the documents"),
    ],
)
def test_an_index_that_is_none(tmp_path: Path, document: bytes, match: str) -> None:
    refused(write(tmp_path / "a.tar", {**oci(tmp_path, GOOD), "index.json": document}), tmp_path, match)


@pytest.mark.parametrize("size", [-1, 0, 10**30, 1e30, "5", True])
def test_a_size_that_is_not_the_blob_s(tmp_path: Path, size: object) -> None:
    parts = oci(tmp_path, GOOD)
    index = json.loads(parts["index.json"])
    index["manifests"][0]["size"] = size
    parts["index.json"] = json.dumps(index).encode()
    refused(write(tmp_path / "a.tar", parts), tmp_path, "bytes, not")


@pytest.mark.parametrize("of", ["index", "entry", "manifest"])
@pytest.mark.parametrize("kind", ["a/b", INDEX_TYPE, MANIFEST_TYPE, 5])
def test_a_type_that_is_unknown_or_another_s(tmp_path: Path, of: str, kind: object) -> None:
    """skopeo goes by the type in the list, Docker by the keys of the document."""
    parts = oci(tmp_path, GOOD)
    index = json.loads(parts["index.json"])
    entry = index["manifests"][0]
    manifest = json.loads(parts[f"blobs/sha256/{entry['digest'][7:]}"])
    {"index": index, "entry": entry, "manifest": manifest}[of]["mediaType"] = kind
    content = json.dumps(manifest).encode()
    entry |= {"digest": blob(parts, content), "size": len(content)}
    parts["index.json"] = json.dumps(index).encode()
    file = write(tmp_path / "a.tar", parts)
    if kind == {"index": INDEX_TYPE}.get(of, MANIFEST_TYPE):
        assert tree(file, tmp_path).files.keys() == {"etc", "etc/a"}
    else:
        refused(file, tmp_path, "is unknown: expected application/vnd")


def test_a_second_name_of_nothing(tmp_path: Path) -> None:
    bad = layer(Entry(path="a", kind=tarfile.LNKTYPE, target="b"))
    refused(docker_archive(tmp_path / "a.tar", [bad], {}), tmp_path, "'a' is a second name of 'b'")


def test_an_index_that_is_a_folder(tmp_path: Path) -> None:
    folder = layout(tmp_path / "oci", {"x:1": ([GOOD], {})})
    (folder / "index.json").unlink()
    (folder / "index.json").mkdir()
    refused(folder, tmp_path, "not an OCI layout")


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz"])
def test_a_compressed_archive_that_is_cut_off(tmp_path: Path, kind: str) -> None:
    plain = docker_archive(tmp_path / "a.tar", [GOOD], {})
    with tarfile.open(tmp_path / f"a.tar.{kind}", f"w:{kind}") as tar:  # type: ignore[call-overload]
        for name, data in parts_of(plain).items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    whole = tmp_path / f"a.tar.{kind}"
    assert tree(whole, tmp_path).files.keys() == {"etc", "etc/a"}
    whole.write_bytes(whole.read_bytes()[:-30])
    refused(whole, tmp_path, "cannot be read")


@pytest.mark.parametrize(
    "more", [{"config": "x.json"}, {"layers": []}, {"Layer\u017f": []}, {"repotags": []}]
)
def test_a_manifest_of_docker_with_keys_in_another_case(tmp_path: Path, more: dict[str, Any]) -> None:
    parts = docker(tmp_path, GOOD)
    [manifest] = json.loads(parts["manifest.json"])
    parts["manifest.json"] = json.dumps([{**manifest, **more}]).encode()
    refused(write(tmp_path / "a.tar", parts), tmp_path, "are one to some tools")
