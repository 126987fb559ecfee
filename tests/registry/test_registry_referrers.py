"""Documents attached to an image: in a real registry, which lists none itself, and in one that does."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from reprobuild.errors import RegistryError
from reprobuild.oci.documents import EMPTY, MANIFEST_TYPE
from reprobuild.registry import client as registry_module
from reprobuild.registry.client import Registry, Target
from reprobuild.registry.labels import read_image_manifest
from reprobuild.registry.referrers import Attachment, attach, referrers
from support.registry import gate_before, serve_registry
from support.server import Httpd

KIND = "application/vnd.example.note+json"
IMAGE = json.dumps({"mediaType": MANIFEST_TYPE, "schemaVersion": 2}).encode()


def digest_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


@pytest.fixture(autouse=True)
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "CERTIFICATES", (tmp_path / "none",))
    monkeypatch.setattr(Registry.__init__, "__kwdefaults__", {"wait": 0.01})


def notes(registry: Registry, manifest: bytes = IMAGE) -> list[bytes]:
    return [document for _, document in referrers(registry, digest_of(manifest), [KIND])]


def test_a_registry_without_a_list_gets_a_tag(tmp_path: Path) -> None:
    with serve_registry(tmp_path / "registry") as host:
        registry = Registry(Target(host, "team/x", "1"))
        assert notes(registry) == []
        attach(registry, IMAGE, [Attachment(KIND, b'{"a":1}', {"k": "v"}), Attachment(KIND, b'{"b":2}')])
        attach(registry, IMAGE, [Attachment(KIND, b'{"c":3}'), Attachment(KIND, b'{"a":1}', {"k": "v"})])
        assert sorted(notes(registry)) == [b'{"a":1}', b'{"b":2}', b'{"c":3}']
        assert notes(registry, IMAGE + b" ") == []
        index = json.loads(registry.read_manifest(digest_of(IMAGE).replace(":", "-")))
        assert {entry["artifactType"] for entry in index["manifests"]} == {KIND}
        assert {"k": "v"} in [entry["annotations"] for entry in index["manifests"]]


def test_a_document_of_another_subject_or_digest_is_not_given(tmp_path: Path) -> None:
    """What the list names may be anything: a manifest about another image, or none."""
    with serve_registry(tmp_path / "registry") as host:
        registry = Registry(Target(host, "team/x", "1"))
        attach(registry, b"another image", [Attachment(KIND, b"{}")])
        other = registry.read_manifest(digest_of(b"another image").replace(":", "-"))
        registry.send_manifest(
            other, digest_of(IMAGE).replace(":", "-"), "application/vnd.oci.image.index.v1+json"
        )
        assert notes(registry) == [b""]


def test_a_push_that_breaks_off_leaves_no_tag_without_evidence(tmp_path: Path) -> None:
    with serve_registry(tmp_path / "registry") as host, gate_before(host) as gate:
        registry = Registry(Target(gate.host, "team/x", "1"))
        gate.faults[r"PUT /v2/team/x/manifests/.*"] = [500] * 99
        with pytest.raises(RegistryError):
            attach(registry, IMAGE, [Attachment(KIND, b"{}")])
        assert registry.manifest_digest() is None


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
    server = Httpd(("127.0.0.1", 0), _handler(listing))
    listing.host = f"127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield listing
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


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


def test_a_registry_that_lists_them_is_asked_page_by_page() -> None:
    with serve_listing() as listing:
        registry = Registry(Target(listing.host, "team/x", "1"))
        wanted = [b'{"n":%d}' % number for number in range(5)]
        attach(registry, IMAGE, [Attachment(KIND, each) for each in wanted])
        assert sorted(notes(registry)) == wanted
        assert EMPTY in listing.blobs.values()
        assert [json.loads(data)["subject"]["digest"] for data in listing.manifests.values()] == [
            digest_of(IMAGE)
        ] * 5  # and no tag in place of the list


def test_a_list_goes_on_at_the_registry_alone_and_ends() -> None:
    with serve_listing() as listing:
        registry = Registry(Target(listing.host, "team/x", "1"))
        attach(registry, IMAGE, [Attachment(KIND, b'{"n":%d}' % number) for number in range(3)])
        listing.further = "http://192.0.2.1/v2/team/x/referrers/{subject}?page={page}"
        with pytest.raises(RegistryError, match="goes on at another address"):
            notes(registry)
        listing.further = "http://[/x"
        with pytest.raises(RegistryError, match="goes on at another address"):
            notes(registry)
        listing.further = "/v2/team/x/referrers/{subject}?page=0"
        with pytest.raises(RegistryError, match="more than 20 pages"):
            notes(registry)


def test_bytes_that_are_not_those_listed_are_an_error() -> None:
    with serve_listing() as listing:
        registry = Registry(Target(listing.host, "team/x", "1"))
        attach(registry, IMAGE, [Attachment(KIND, b"{}")])
        (digest,) = listing.manifests
        listing.manifests[digest] = listing.manifests[digest].replace(b"note", b"lies")
        with pytest.raises(RegistryError, match="do not fit the digest"):
            list(referrers(registry, digest_of(IMAGE), [KIND.replace("note", "lies")]))


@pytest.mark.parametrize("odd", ["latest", "sha512:" + "a" * 128, "../../other/x"])
def test_a_document_without_a_digest_that_is_verified_is_not_asked_for(odd: str) -> None:
    entry = {"digest": odd, "artifactType": KIND}
    registry = SimpleNamespace(referrers=lambda _: [entry])
    assert [*referrers(cast("Registry", registry), digest_of(IMAGE), [KIND])] == [(odd, b"")]
    document = {"layers": [{"digest": odd, "mediaType": KIND}], "subject": {"digest": digest_of(IMAGE)}}
    registry.read_manifest = lambda _: json.dumps(document).encode()
    entry["digest"] = digest_of(b"")
    assert [*referrers(cast("Registry", registry), digest_of(IMAGE), [KIND])] == [(digest_of(b""), b"")]


@pytest.mark.parametrize(
    "index", [b'{"manifests": 3}', b'{"manifests": [{"digest": 3}]}', b'{"manifests": [4]}', b"[]"]
)
def test_a_list_of_platforms_is_a_stranger_s_word(index: bytes) -> None:
    with serve_listing() as listing:
        listing.blobs["1"] = index
        with pytest.raises(RegistryError, match="team/x"):
            read_image_manifest(Registry(Target(listing.host, "team/x", "1")), "1", "team/x")
