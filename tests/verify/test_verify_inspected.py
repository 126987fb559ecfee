from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from reprobuild.errors import ImageError
from reprobuild.oci.registry.client import Registry
from reprobuild.verify.evidence.keys import read_public_key
from reprobuild.verify.evidence.statements import Subject
from reprobuild.verify.find_evidence import Evidenced
from reprobuild.verify.inspected import inspect_image, origins
from support.evidence import SUBJECT, a_lock, a_test, signed, texts, write_key

MANIFEST = {"layers": [{"digest": "sha256:1", "size": 5}, {"digest": "sha256:2", "size": 7}]}
CONFIG = {"history": [{"created_by": "reprobuild: Debian"}, {"empty_layer": True}, {"created_by": "RUN x"}]}


class Documents:
    """A registry that has a manifest and a configuration."""

    def __init__(self, manifest: Any, config: Any) -> None:
        self._manifest, self._config = manifest, config

    def read_manifest(self, _digest: str) -> bytes:
        return json.dumps(self._manifest).encode()

    def read_blob(self, _digest: str) -> bytes:
        return json.dumps(self._config).encode()


def evidenced(manifest: Any = MANIFEST, config: Any = CONFIG, **changes: Any) -> Evidenced:
    registry = cast("Registry", Documents(manifest, config))
    found = Evidenced(name="x", subject=SUBJECT, documents={}, lock=None, registry=registry)
    return replace(found, **changes)


def test_an_image_of_foreign_make_has_layers_and_nothing_else_is_known() -> None:
    found = inspect_image(evidenced(), [])
    assert [(layer.title, layer.size) for layer in found.layers] == [("Debian", 5), ("RUN x", 7)]
    assert (found.size, found.packages, found.report, found.evidence) == (12, (), None, ())
    assert found.notes == ("packages: the image carries no lock in its uppermost layer",)


def test_layers_without_a_fitting_history_have_no_titles() -> None:
    assert {y.title for y in inspect_image(evidenced(config={"history": []}), []).layers} == {""}
    assert {y.title for y in inspect_image(evidenced(config={}), []).layers} == {""}


@pytest.mark.parametrize(
    ("manifest", "config"),
    [
        ({}, CONFIG),
        ([], CONFIG),
        ({"layers": [{"digest": "sha256:1"}]}, CONFIG),
        ({"layers": [{"digest": "sha256:1", "size": "many"}]}, CONFIG),
        ({"layers": [{"digest": "sha256:1", "size": -1}]}, CONFIG),
        ({"layers": None}, CONFIG),
        (MANIFEST, []),
        (MANIFEST, {"history": [1]}),
        (MANIFEST, {"history": 1}),
    ],
)
def test_damaged_documents_are_named(manifest: Any, config: Any) -> None:
    with pytest.raises(ImageError, match="x: its manifest or configuration is damaged"):
        inspect_image(evidenced(manifest, config), [])


def test_each_document_says_whose_word_it_is() -> None:
    named = {str(kind): text for kind, text in texts().items()}
    found = inspect_image(evidenced(documents={**named, "bad": b"{"}, lock=a_lock()), [])
    said = {each.place: each.text for each in found.evidence}
    assert said.pop("bad").startswith("cannot be read: it is not JSON")
    assert set(said.values()) == {"unsigned: the word of whoever wrote it"}
    assert found.report is not None
    assert not found.report_is_signed
    other = Subject("sha256:" + "7" * 64, "")
    found = inspect_image(evidenced(documents=named, subject=other), [])
    assert {each.text[:19] for each in found.evidence} == {"about another image"}
    assert found.report is None


def test_a_signed_report_about_a_configuration_is_no_word_of_a_key_on_layers(
    tmp_path: Path,
) -> None:
    key = write_key(tmp_path, "team")
    keys, documents = [read_public_key(key.with_suffix(".pub"))], signed(texts(), key)
    assert inspect_image(evidenced(documents=documents), keys).report_is_signed
    other = Subject("sha256:" + "7" * 64, SUBJECT.config)
    unsigned = {f"own {kind}": text for kind, text in texts(subject=other, report=a_test()).items()}
    found = inspect_image(evidenced(documents={**documents, **unsigned}, subject=other), keys)
    assert not found.report_is_signed
    assert any("to which any manifest can point" in note for note in found.notes)


def test_packages_are_added_up_by_kind_and_origin() -> None:
    lock = a_lock()
    found = inspect_image(evidenced(lock=lock), [])
    rows = origins(found.packages)
    assert sum(count for _, _, count, _ in rows) == len(list(lock.artifacts))
    assert sum(size for *_, size in rows) == lock.size
    assert {kind for kind, *_ in rows} == {"python", "debian"}
