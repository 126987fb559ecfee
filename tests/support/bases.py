"""Base images put into a registry by its API, in Docker's form and in OCI's, alone or in a list."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import requests

from support.images import Entry, layer

Form = Literal["docker", "oci"]

_DOCKER = "application/vnd.docker"
_OCI = "application/vnd.oci.image"
TYPES: Mapping[Form, Mapping[str, str]] = {
    "docker": {
        "index": f"{_DOCKER}.distribution.manifest.list.v2+json",
        "manifest": f"{_DOCKER}.distribution.manifest.v2+json",
        "config": f"{_DOCKER}.container.image.v1+json",
        "layer": f"{_DOCKER}.image.rootfs.diff.tar.gzip",
    },
    "oci": {
        "index": f"{_OCI}.index.v1+json",
        "manifest": f"{_OCI}.manifest.v1+json",
        "config": f"{_OCI}.config.v1+json",
        "layer": f"{_OCI}.layer.v1.tar+gzip",
    },
}
PYTHON = "3.11.9"


def files(
    more: Mapping[str, bytes] | None = None,
    *,
    python: str = "usr/local",
    system: str = "ID=toy\nPRETTY_NAME='Toy 1'\n",
) -> bytes:
    """Return a layer with what a base needs; the programs in it say their version and do nothing."""
    entries = [
        Entry(path="usr/lib/os-release", content=system.encode()),
        Entry(path="etc/os-release", kind=b"2", target="../usr/lib/os-release"),
        Entry(path="bin", kind=b"2", target="usr/bin"),
        Entry(path="lib64", kind=b"2", target="usr/lib64"),
        Entry(path="usr/bin/sh", content=b"shell", mode=0o755),
        Entry(path="usr/lib64/ld-linux-x86-64.so.2", kind=b"2", target="/usr/lib/x/ld.so"),
        Entry(path="usr/lib/x/ld.so", content=b"loader"),
        Entry(path="usr/lib/x/libc.so.6", content=b"GNU C Library stable release version 2.36."),
        *(Entry(path=path, content=content) for path, content in (more or {}).items()),
    ]
    if python:
        entries += [
            Entry(path=f"{python}/bin/python3.11", content=f"x\0{PYTHON}\0y".encode(), mode=0o755),
            Entry(path=f"{python}/lib/python3.11/venv/__init__.py"),
        ]
    return layer(*entries)


def packed(data: bytes) -> bytes:
    """Return a layer as it is pushed."""
    return gzip.compress(data, 1, mtime=0)


def digest_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Pusher:
    """Puts images into a repository of a registry, with a login where it wants one."""

    def __init__(self, host: str, repository: str, login: tuple[str, str] | None = None) -> None:
        self.root = f"http://{host}/v2/{repository}"
        self.name = f"{host}/{repository}"
        self._session = requests.Session()
        self._session.auth = login

    def blob(self, data: bytes) -> str:
        begun = self._session.post(f"{self.root}/blobs/uploads/", timeout=10)
        place, mark = begun.headers["Location"], "&" if "?" in begun.headers["Location"] else "?"
        done = self._session.put(f"{place}{mark}digest={digest_of(data)}", data=data, timeout=10)
        assert done.status_code == 201, done.text
        return digest_of(data)

    def manifest(self, document: Mapping[str, Any], tag: str) -> str:
        data = json.dumps(document).encode()
        kind = {"Content-Type": str(document["mediaType"])}
        done = self._session.put(f"{self.root}/manifests/{tag}", data=data, headers=kind, timeout=10)
        assert done.status_code == 201, done.text
        return digest_of(data)

    def image(
        self,
        layers: Sequence[bytes],
        *,
        tag: str = "1",
        form: Form = "docker",
        architecture: str = "amd64",
        created: str = "2024-09-01T00:00:00Z",
        **config: Any,
    ) -> str:
        """Push an image; return the digest of its manifest. ``config`` is the section of that name."""
        types = TYPES[form]
        blobs = [packed(each) for each in layers]
        document = {
            "architecture": architecture,
            "os": "linux",
            "created": created,
            "config": config,
            "history": [{"created": created, "created_by": "a test"}] * len(layers),
            "rootfs": {"type": "layers", "diff_ids": [digest_of(each) for each in layers]},
        }
        content = json.dumps(document).encode()
        return self.manifest(
            {
                "schemaVersion": 2,
                "mediaType": types["manifest"],
                "config": {
                    "mediaType": types["config"],
                    "digest": self.blob(content),
                    "size": len(content),
                },
                "layers": [
                    {"mediaType": types["layer"], "digest": self.blob(each), "size": len(each)}
                    for each in blobs
                ],
            },
            tag,
        )

    def index(self, images: Mapping[str, str], *, tag: str = "1", form: Form = "docker") -> str:
        """Push a list of images by platform, with an attestation as builders add them."""
        types = TYPES[form]
        entries = []
        for platform, digest in [*images.items(), ("unknown/unknown", next(iter(images.values())))]:
            system, architecture = platform.split("/")
            size = len(self._session.get(f"{self.root}/manifests/{digest}", timeout=10).content)
            entries.append(
                {
                    "mediaType": types["manifest"],
                    "digest": digest,
                    "size": size,
                    "platform": {"os": system, "architecture": architecture},
                }
            )
        document = {"schemaVersion": 2, "mediaType": types["index"], "manifests": entries}
        return self.manifest(document, tag)
