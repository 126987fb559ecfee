"""Documents attached to an image: in a real registry, which lists none itself, and in one that does."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from reprobuild.errors import RegistryError
from reprobuild.oci.documents import EMPTY, MANIFEST_TYPE
from reprobuild.oci.registry.client import Registry, Target
from reprobuild.oci.registry.referrers import Attachment, attach, referrers
from support.fixtures import fixtures_of
from support.listings import digest_of, serve_listing
from support.registry import gate_before, serve_registry

globals().update(fixtures_of("support.listings"))

KIND = "application/vnd.example.note+json"
IMAGE = json.dumps({"mediaType": MANIFEST_TYPE, "schemaVersion": 2}).encode()


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
        with pytest.raises(RegistryError, match="do not match the digest"):
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


_LAYER = {"digest": digest_of(b"{}"), "mediaType": KIND}
_SUBJECT = {"digest": digest_of(IMAGE)}


@pytest.mark.parametrize(
    "manifest",
    [
        {"layers": [_LAYER, _LAYER], "subject": _SUBJECT},
        {"layers": [], "subject": _SUBJECT},
        {"layers": [{**_LAYER, "mediaType": "text/plain"}], "subject": _SUBJECT},
        {"layers": [_LAYER], "subject": {"digest": digest_of(IMAGE).upper()}},
        {"layers": [_LAYER], "subject": None},
        {"layers": [_LAYER]},
        {"manifests": [_LAYER], "subject": _SUBJECT},
        {"layers": {"0": _LAYER}, "subject": _SUBJECT},
        [],
    ],
)
def test_what_is_not_one_document_about_the_image_is_given_as_no_bytes(manifest: object) -> None:
    """Two layers, another type, an index of manifests: which of them counts would be anybody's guess."""
    entry = {"digest": digest_of(b""), "artifactType": KIND, "annotations": {"any": "thing"}}
    registry = SimpleNamespace(
        referrers=lambda _: [entry, {**entry, "artifactType": "text/plain"}],
        read_manifest=lambda _: json.dumps(manifest).encode(),
        read_blob=lambda _: b"{}",
    )
    found = [*referrers(cast("Registry", registry), digest_of(IMAGE), [KIND])]
    assert found == [(digest_of(b""), b"")]
    good = {"layers": [_LAYER], "subject": _SUBJECT}
    registry.read_manifest = lambda _: json.dumps(good).encode()
    assert [*referrers(cast("Registry", registry), digest_of(IMAGE), [KIND])] == [(digest_of(b""), b"{}")]


def test_a_document_is_read_once_and_whatever_type_the_list_gives_it() -> None:
    """A list need not have the type of a document: then its manifest says what it is."""
    with serve_listing() as listing:
        registry = Registry(Target(listing.host, "team/x", "1"))
        attach(registry, IMAGE, [Attachment(KIND, b"{}"), Attachment("text/plain", b"x")])
        asked: list[str] = []
        read, entries = registry.read_manifest, listing.of(digest_of(IMAGE))
        registry.read_manifest = lambda wanted: asked.append(wanted) or read(wanted)  # type: ignore[func-returns-value, method-assign]
        for kind in (KIND, None, ""):
            listed = [{**entry, "artifactType": kind and entry["artifactType"]} for entry in entries]
            registry.referrers = lambda _, each=listed: each * 999  # type: ignore[method-assign, misc]
            assert notes(registry) == [b"{}"]
        assert len(asked) == 5
