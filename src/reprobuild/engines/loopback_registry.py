"""A registry on loopback, from which a daemon pulls the layers of an image.

Docker's older store takes layers faster in a pull than out of an archive. What is pulled is another image
with the same layers, the carrier, since Docker removes an image with its last name. Once the daemon has the
layers, an archive without any is enough for the image itself, and the carrier goes.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from threading import Thread
from typing import Any

from ..host.workers import workers
from ..oci.blobs import refuse_damaged
from ..oci.documents import MANIFEST_TYPE, sha256, stand_in
from ..oci.recompress import inflated, inflated_size
from ..oci.store import Image, ImageStore
from ..oci.stream import CHUNK
from ..oci.tar_writer import Layer
from ..render.labels import LABEL

CARRIER = LABEL + "carrier"
"""The label of a carrier."""

_TAR = "application/vnd.oci.image.layer.v1.tar"
"""Layers go inflated, under the digest of the tar: any Docker takes these, and need not inflate them."""

_BYTES = "application/octet-stream"

_Answer = tuple[str, int, bytes | Path]
"""Content type, size and content of each path, or the blob to inflate for it."""


@contextmanager
def offered(images: ImageStore, image: Image, *, known: int) -> Iterator[str]:
    """Serve the layers of an image in the store as a carrier during the block.

    Gives its reference, ``HOST:PORT/REPOSITORY@DIGEST``; the repository's name is a secret, so that other
    users of the machine cannot ask. ``known``: how many of the lowest layers the daemon has. It asks for one
    of these all the same if that did not come in a pull; then it is refused, which ends the pull: an archive
    can leave them out. Raises `ImageError` for a layer that is missing or damaged.
    """
    layers = images.layers(image.digest)
    with workers(len(os.sched_getaffinity(0))) as pool:
        # Of those that are not given, any size will do.
        sizes = [0] * known + list(pool.map(_size, [blob for blob, _ in layers[known:]]))
    repository = secrets.token_hex(16)
    tars = [Layer(diff_id, diff_id, size, _TAR) for (_, diff_id), size in zip(layers, sizes, strict=True)]
    # A later run tells by its age that a carrier was left. None outlives its transfer, so no clock leaks.
    documents = stand_in(images.config(image.digest), tars, {CARRIER: repository}, datetime.now(UTC))
    place = f"/v2/{repository}"
    answers: dict[str, _Answer] = {
        "/v2/": ("application/json", 2, b"{}"),
        f"{place}/manifests/{documents.digest}": (MANIFEST_TYPE, len(documents.manifest), documents.manifest),
        f"{place}/blobs/{sha256(documents.config)}": (_BYTES, len(documents.config), documents.config),
    }
    for tar, (blob, _) in list(zip(tars, layers, strict=True))[known:]:
        answers[f"{place}/blobs/{tar.digest}"] = (_BYTES, tar.size, blob)
    with _Server(answers) as server:
        thread = Thread(target=partial(server.serve_forever, poll_interval=0.05), daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}/{repository}@{documents.digest}"
        finally:
            server.shutdown()
            thread.join()


def _size(blob: Path) -> int:
    refuse_damaged(blob)  # a daemon would ask for it again and again, and then blame its own side
    return inflated_size(blob)


class _Server(ThreadingTCPServer):
    """A read-only registry of one image (OCI distribution specification, "pull")."""

    daemon_threads = True
    request_queue_size = 16

    def __init__(self, answers: Mapping[str, _Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = answers

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a daemon that hangs up says why itself."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    timeout = 600  # the daemon reads as slowly as its disk writes

    def do_HEAD(self) -> None:
        self._head()

    def do_GET(self) -> None:
        content = self._head()
        if isinstance(content, bytes):
            self.wfile.write(content)
            return
        with inflated(content) as tar:
            for data in iter(partial(tar.read, CHUNK), b""):
                self.wfile.write(data)

    def _head(self) -> bytes | Path:
        """Start the response; return its body."""
        found = self.server.answers.get(self.path)
        kind, size, content = found or (_BYTES, 0, b"")
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        return content

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- its name in the library
        """Say nothing."""
