"""The layers of an image, offered on this machine's loopback for a daemon to pull.

Docker's older store takes layers faster in a pull than out of an archive. What is pulled is another image
with the same layers, the carrier, since Docker removes an image with its last name. Once the daemon has the
layers, an archive without any is enough for the image itself, and the carrier goes.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from threading import Thread
from typing import Any

from ..oci.documents import CONFIG_TYPE, MANIFEST_TYPE, sha256
from ..oci.packed import inflated, inflated_size, refuse_damaged
from ..oci.store import Image, ImageStore
from ..oci.stream import CHUNK
from ..render.labels import LABEL

CARRIER = LABEL + "carrier"
"""The label of a carrier."""

_LAYER = "application/vnd.oci.image.layer.v1.tar"
"""Layers go inflated, under the digest of the tar: any Docker takes these, and need not inflate them."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What can be pulled while it lasts."""

    reference: str
    """``HOST:PORT/REPOSITORY@DIGEST``. The repository's name is a secret, which other users do not know."""
    sent: set[str] = field(default_factory=set)
    """The layers (``diff_id``) that were asked for and sent."""


@contextmanager
def offered(images: ImageStore, image: Image, *, known: int) -> Iterator[Offer]:
    """Offer the layers of an image of the store as a carrier, for the time of the block.

    ``known``: how many of the lowest layers the daemon has. It asks for one of these all the same if that did
    not come in a pull; then it is refused, which ends the pull: an archive can leave them out. Raises
    `ImageError` for a layer that is missing or damaged.
    """
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 -- who only lists images need not wait

    layers = images.layers(image.digest)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        sizes = list(pool.map(_size, [blob for blob, _ in layers]))
    repository = secrets.token_hex(16)
    config = _config(images.config(image.digest), repository)
    described = [
        {"mediaType": _LAYER, "digest": diff_id, "size": size}
        for (_, diff_id), size in zip(layers, sizes, strict=True)
    ]
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": {"mediaType": CONFIG_TYPE, "digest": sha256(config), "size": len(config)},
            "layers": described,
        }
    )
    tars = {
        diff_id: (blob, size) for (blob, diff_id), size in zip(layers[known:], sizes[known:], strict=True)
    }
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.repository, server.documents, server.tars = repository, (manifest, config), tars
        server.sent = set()
        thread = Thread(target=partial(server.serve_forever, poll_interval=0.05), daemon=True)
        thread.start()
        try:
            address = f"127.0.0.1:{server.server_address[1]}"
            yield Offer(f"{address}/{repository}@{sha256(manifest)}", server.sent)
        finally:
            server.shutdown()
            thread.join()


def _size(blob: Path) -> int:
    refuse_damaged(blob)
    return inflated_size(blob)


def _config(config: Mapping[str, Any], nonce: str) -> bytes:
    """Return the configuration of a carrier, which runs nothing."""
    return _json(
        {
            "architecture": config["architecture"],
            "os": config["os"],
            # A later run tells by its age that it was left. It does not outlive the transfer.
            "created": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
            "config": {"Labels": {CARRIER: nonce}},
            "rootfs": config["rootfs"],
        }
    )


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document).encode()


class _Server(ThreadingTCPServer):
    """A registry of one image, for reading alone (the OCI distribution specification, "pull")."""

    daemon_threads = True
    request_queue_size = 16
    repository: str
    documents: tuple[bytes, bytes]
    tars: Mapping[str, tuple[Path, int]]
    sent: set[str]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a daemon that hangs up says why itself."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    timeout = 600

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        manifest, config = self.server.documents
        place = f"/v2/{self.server.repository}"
        documents = {
            "/v2/": ("application/json", b"{}"),
            f"{place}/manifests/{sha256(manifest)}": (MANIFEST_TYPE, manifest),
            f"{place}/blobs/{sha256(config)}": ("application/octet-stream", config),
        }
        if self.path in documents:
            kind, content = documents[self.path]
            self._head(200, len(content), kind)
            self.wfile.write(content * body)
            return
        folder, _, digest = self.path.rpartition("/")
        if folder == f"{place}/blobs" and digest in self.server.tars:
            blob, size = self.server.tars[digest]
            self._head(200, size)
            if body:
                self._send(blob)
                self.server.sent.add(digest)
            return
        self._head(404, 0)

    def _head(self, status: int, length: int, kind: str = "application/octet-stream") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def _send(self, blob: Path) -> None:
        with inflated(blob) as tar:
            for data in iter(partial(tar.read, CHUNK), b""):
                self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- its name in the library
        """Say nothing."""
