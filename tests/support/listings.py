"""Registries that list documents of an image.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from reprobuild.oci.registry import client as registry_module
from reprobuild.oci.registry.client import Registry
from support.server import listening


def digest_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


@pytest.fixture(autouse=True)
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "CERTIFICATES", (tmp_path / "none",))
    monkeypatch.setattr(Registry.__init__, "__kwdefaults__", {"wait": 0.01})


@dataclass
class Listing:
    """A registry that lists referrers, two a page."""

    host: str = ""
    blobs: dict[str, bytes] = field(default_factory=dict)
    manifests: dict[str, bytes] = field(default_factory=dict)
    """By digest."""
    further: str = "/v2/team/x/referrers/{subject}?page={page}"
    """The address of the next page."""

    def of(self, subject: str) -> list[dict[str, Any]]:
        tables = {digest: json.loads(data) for digest, data in self.manifests.items()}
        return [
            {"digest": digest, "artifactType": table.get("artifactType"), "size": len(self.manifests[digest])}
            for digest, table in sorted(tables.items())
            if table.get("subject", {}).get("digest") == subject
        ]


@contextmanager
def serve_listing() -> Iterator[Listing]:
    """Serve such a registry: no Debian package is one."""
    listing = Listing()
    with listening(_handler(listing)) as server:
        listing.host = f"127.0.0.1:{server.server_address[1]}"
        yield listing


def _handler(listing: Listing) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _say(self, status: int, body: bytes = b"", **headers: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            name = path.rpartition("/")[2]
            if "/referrers/" in path:
                page, found = int(query.removeprefix("page=") or 0), listing.of(name)
                more = {}
                if len(found) > 2 * page + 2:
                    more["Link"] = f'<{listing.further.format(subject=name, page=page + 1)}>; rel="next"'
                body = json.dumps({"manifests": found[2 * page : 2 * page + 2], "schemaVersion": 2}).encode()
                return self._say(200, body, **more)
            known = {**listing.blobs, **listing.manifests}
            if path == "/v2/":
                return self._say(200)
            return self._say(200, known[name]) if name in known else self._say(404)

        do_HEAD = do_GET  # noqa: N815 -- http.server's name

        def do_POST(self) -> None:
            self._say(202, Location="/v2/team/x/blobs/uploads/1")

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if "/manifests/" not in self.path:
                listing.blobs[digest_of(body)] = body
                return self._say(201)
            listing.manifests[digest_of(body)] = body
            subject = json.loads(body).get("subject", {}).get("digest", "")
            return self._say(201, **({"OCI_Subject": subject} if subject else {}))

        def log_message(self, *_: object) -> None:
            pass

    return Handler
