"""Documents attached to an image: in a real registry, which lists none itself, and in one that does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from reprobuild.errors import RegistryError
from reprobuild.oci.documents import EMPTY, MANIFEST_TYPE
from reprobuild.oci.registry.client import Registry, Target
from reprobuild.oci.registry.referrers import (
    Attachment,
    Referrer,
    Unread,
    attach,
    referrers,
)
from support.fixtures import fixtures_of
from support.listings import digest_of, serve_listing
from support.registry import gate_before, serve_registry

globals().update(fixtures_of("support.listings"))

KIND = "application/vnd.example.note+json"
IMAGE = json.dumps({"mediaType": MANIFEST_TYPE, "schemaVersion": 2}).encode()


def notes(registry: Registry, manifest: bytes = IMAGE) -> list[bytes]:
    return [
        found.document if isinstance(found.document, bytes) else found.document.reason.encode()
        for found in referrers(registry, digest_of(manifest), [KIND])
    ]


def unread(found: Referrer) -> str:
    assert isinstance(found.document, Unread)
    begins = "the registry lists it, and it is not one document about this image: "
    assert found.document.reason.startswith(begins)
    return found.document.reason.removeprefix(begins)


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
        other_image = digest_of(b"another image")
        assert [*map(unread, referrers(registry, digest_of(IMAGE), [KIND]))] == [
            f"it is about another image, {other_image}"
        ]


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
        with pytest.raises(RegistryError, match="continues at another address"):
            notes(registry)
        listing.further = "http://[/x"
        with pytest.raises(RegistryError, match="continues at another address"):
            notes(registry)
        listing.further = "/v2/team/x/referrers/{subject}?page=0"
        with pytest.raises(RegistryError, match="more than 20 pages"):
            notes(registry)
        listing.further = "/v2/team/x/blobs/{subject}"  # where nothing is: the rest of the list is not given
        with pytest.raises(RegistryError, match="its list of referrers breaks off"):
            notes(registry)


def test_bytes_that_are_not_those_listed_are_an_error() -> None:
    with serve_listing() as listing:
        registry = Registry(Target(listing.host, "team/x", "1"))
        attach(registry, IMAGE, [Attachment(KIND, b"{}")])
        (digest,) = listing.manifests
        listing.manifests[digest] = listing.manifests[digest].replace(b"note", b"lies")
        with pytest.raises(RegistryError, match="do not match the digest"):
            list(referrers(registry, digest_of(IMAGE), [KIND.replace("note", "lies")]))


def listed(*entries: Any, manifest: object = None, content: bytes = b"{}") -> Iterator[Referrer]:
    """What a registry with one manifest and one blob gives, that lists some entries."""
    registry = SimpleNamespace(
        referrers=lambda _: [*entries],
        read_manifest=lambda _: json.dumps(manifest).encode(),
        read_blob=lambda _: content,
    )
    return referrers(cast("Registry", registry), digest_of(IMAGE), [KIND])


@pytest.mark.parametrize("odd", ["latest", "sha512:" + "a" * 128, "../../other/x"])
def test_a_document_without_a_digest_that_is_verified_is_not_asked_for(odd: str) -> None:
    (found,) = listed({"digest": odd, "artifactType": KIND})
    assert (found.digest, unread(found)) == (odd, "its digest cannot be verified")
    document = {"layers": [{"digest": odd, "mediaType": KIND}], "subject": {"digest": digest_of(IMAGE)}}
    (found,) = listed({"digest": digest_of(b""), "artifactType": KIND}, manifest=document)
    assert "is not a digest" in unread(found)


_LAYER = {"digest": digest_of(b"{}"), "mediaType": KIND}
_SUBJECT = {"digest": digest_of(IMAGE)}
_OTHER = digest_of(b"another image")


@pytest.mark.parametrize("told", [KIND, "text/plain", "", None, 5])
@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ({"layers": [_LAYER, _LAYER], "subject": _SUBJECT}, "its manifest has 2 layers"),
        ({"layers": [], "subject": _SUBJECT}, "its manifest has 0 layers"),
        ({"layers": [_LAYER], "subject": {"digest": _OTHER}}, f"it is about another image, {_OTHER}"),
        ({"layers": [_LAYER], "subject": {"digest": digest_of(IMAGE).upper()}}, "is not a digest"),
        ({"layers": [_LAYER], "subject": None}, "subject"),
        ({"layers": [_LAYER]}, "subject: missing"),
        ({"manifests": [_LAYER], "subject": _SUBJECT}, "layers: missing"),
        ({"layers": {"0": _LAYER}, "subject": _SUBJECT}, "layers"),
        ({"layers": ["x"], "subject": _SUBJECT}, "layers"),
        ({"layers": [_LAYER], "subject": _SUBJECT, "config": 3}, "config"),
        ({"layers": [{**_LAYER, "size": 5 << 20}], "subject": _SUBJECT}, "it has 5,242,880 bytes, and at"),
        ({"layers": [{**_LAYER, "size": -1}], "subject": _SUBJECT}, "is not a valid size"),
        ([], "its manifest"),
        (None, "its manifest"),
    ],
)
def test_what_is_not_one_document_about_the_image_is_named(
    manifest: object, reason: str, told: object
) -> None:
    """Two layers, another image, an index of manifests: whatever the list says of it, it is not silent."""
    (found,) = listed({"digest": digest_of(b""), "artifactType": told}, manifest=manifest)
    assert reason in unread(found)


@pytest.mark.parametrize("told", [KIND, "text/plain", "", None, 5])
def test_the_type_in_a_list_hides_no_document(told: object) -> None:
    """A registry that lists a failed test as something else would have passed for one that has none."""
    entry = {"digest": digest_of(b""), "artifactType": told, "annotations": {"any": "thing"}}
    plain = {**_LAYER, "mediaType": "text/plain"}
    for manifest, foreign in (
        ({"layers": [_LAYER], "subject": _SUBJECT}, ""),
        ({"layers": [_LAYER], "subject": _SUBJECT, "artifactType": "text/plain"}, ""),
        ({"layers": [plain], "subject": _SUBJECT, "artifactType": KIND}, ""),
        ({"layers": [plain], "subject": _SUBJECT, "config": {"mediaType": KIND}}, ""),
        ({"layers": [plain], "subject": _SUBJECT, "artifactType": "a/b"}, "'a/b'"),
        ({"layers": [{"digest": digest_of(b"{}")}], "subject": _SUBJECT}, "'no type'"),
    ):
        found = [*listed(entry, {**entry, "artifactType": "x/y"}, manifest=manifest)]
        assert found == [Referrer(digest_of(b""), b"{}", foreign)]


def test_documents_of_other_types_are_read_up_to_a_bound_and_then_named() -> None:
    """Bills that scanners attach each night must not keep evidence from being read."""
    entries = [{"digest": digest_of(b"%d" % number)} for number in range(20)]
    manifest = {"layers": [{**_LAYER, "mediaType": "a/b", "size": 4 << 20}], "subject": _SUBJECT}
    found = [*listed(*entries, manifest=manifest, content=b"x" * (4 << 20))]
    assert [isinstance(each.document, Unread) for each in found] == [False] * 16 + [True] * 4
    manifest = {"layers": [{**_LAYER, "size": 4 << 20}], "subject": _SUBJECT}
    entries = [{"digest": digest_of(b"%d" % number)} for number in range(65)]
    with pytest.raises(RegistryError, match="have more than 268,435,456 bytes"):
        list(listed(*entries, manifest=manifest, content=b"x" * (4 << 20)))
    with pytest.raises(RegistryError, match="has 1001 documents attached, and 1000 are read"):
        list(listed(*({"digest": digest_of(b"%d" % number)} for number in range(1001))))


def test_a_document_is_read_once_and_whatever_type_the_list_gives_it() -> None:
    with serve_listing() as listing:
        registry = Registry(Target(listing.host, "team/x", "1"))
        attach(registry, IMAGE, [Attachment(KIND, b"{}"), Attachment("text/plain", b"x")])
        asked: list[str] = []
        read, entries = registry.read_manifest, listing.of(digest_of(IMAGE))
        registry.read_manifest = lambda wanted: asked.append(wanted) or read(wanted)  # type: ignore[func-returns-value, method-assign]
        for kind in (KIND, None, "", "a/b"):
            told = [{**entry, "artifactType": kind} for entry in entries]
            registry.referrers = lambda _, each=told: each * 999  # type: ignore[method-assign, misc]
            found = {each.document: each.foreign for each in referrers(registry, digest_of(IMAGE), [KIND])}
            assert found == {b"{}": "", b"x": "'text/plain'"}
        assert len(asked) == 8
