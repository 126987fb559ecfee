"""Small images made by hand, in the forms in which tools write them."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One entry of a layer."""

    path: str
    content: bytes = b""
    kind: bytes = tarfile.REGTYPE
    target: str = ""
    mode: int = 0o644
    uid: int = 0
    mtime: int = 0
    device: tuple[int, int] = (0, 0)
    attributes: Mapping[str, str] = field(default_factory=dict)


def layer(*entries: Entry | str) -> bytes:
    """Return the tar of a layer; a bare path is an empty file, with a slash at its end a folder."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for each in entries:
            entry = each if isinstance(each, Entry) else _plain(each)
            info = tarfile.TarInfo(entry.path)
            info.type, info.linkname, info.mode = entry.kind, entry.target, entry.mode
            info.uid, info.mtime, info.size = entry.uid, entry.mtime, len(entry.content)
            info.devmajor, info.devminor = entry.device
            info.pax_headers = {f"SCHILY.xattr.{name}": value for name, value in entry.attributes.items()}
            tar.addfile(info, io.BytesIO(entry.content))
    return out.getvalue()


def _plain(path: str) -> Entry:
    if path.endswith("/"):
        return Entry(path=path, kind=tarfile.DIRTYPE, mode=0o755)
    return Entry(path=path)


PACK: Mapping[str, Callable[[bytes], bytes]] = {
    "plain": lambda data: data,
    "gzip": lambda data: gzip.compress(data, 1),
    "zstd": lambda data: zstandard.ZstdCompressor().compress(data),
}


def docker_archive(file: Path, layers: Sequence[bytes], config: Mapping[str, Any], name: str = "a:1") -> Path:
    """Write an image as ``docker save`` does, the second of equal layers a link to the first."""
    found: dict[bytes, str] = {}
    names = []
    with tarfile.open(file, "w") as tar:
        for number, data in enumerate(layers):
            path = f"{number}/layer.tar"
            info = tarfile.TarInfo(path)
            if data in found:
                info.type, info.linkname = tarfile.SYMTYPE, f"../{found[data]}"
                tar.addfile(info)
            else:
                found[data] = path
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
            _add(tar, f"{number}/VERSION", b"1.0")
            names.append(path)
        _add(tar, "config.json", _configuration(layers, config))
        manifest = [{"Config": "config.json", "Layers": names, "RepoTags": [name]}]
        _add(tar, "manifest.json", json.dumps(manifest).encode())
    return file


def layout(folder: Path, images: Mapping[str, tuple[Sequence[bytes], Mapping[str, Any]]]) -> Path:
    """Write images, by name, as an OCI layout; their layers are packed already."""
    entries = []
    for name, (layers, config) in images.items():
        manifest = {
            "config": _blob(folder, _configuration(layers, config)),
            "layers": [_blob(folder, data) for data in layers],
            **({"annotations": config["Labels"]} if "Labels" in config else {}),
        }
        blob = _blob(folder, json.dumps(manifest).encode())
        entries.append({"annotations": {"org.opencontainers.image.ref.name": name}, **blob})
    (folder / "index.json").write_text(json.dumps({"manifests": entries}))
    return folder


def oci_archive(file: Path, folder: Path) -> Path:
    """Write a layout as one file."""
    with tarfile.open(file, "w") as tar:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            _add(tar, f"./{path.relative_to(folder)}", path.read_bytes())
    return file


def _configuration(layers: Sequence[bytes], config: Mapping[str, Any]) -> bytes:
    diff_ids = [f"sha256:{hashlib.sha256(_unpacked(data)).hexdigest()}" for data in layers]
    return json.dumps({"config": config, "rootfs": {"type": "layers", "diff_ids": diff_ids}}).encode()


def _unpacked(data: bytes) -> bytes:
    if data.startswith(b"\x1f\x8b"):
        return gzip.decompress(data)
    return zstandard.ZstdDecompressor().decompress(data) if data.startswith(b"\x28\xb5") else data


def _blob(folder: Path, data: bytes) -> dict[str, Any]:
    digest = hashlib.sha256(data).hexdigest()
    path = folder / "blobs" / "sha256" / digest
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return {"digest": f"sha256:{digest}", "size": len(data)}


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))
