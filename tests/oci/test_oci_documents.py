"""JSON documents of images that reprobuild did not write."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest

from reprobuild.oci.documents import descriptors, parse_json


def test_labels_and_annotations_may_differ_in_case_alone() -> None:
    text = b'{"config":{"Labels":{"a":"1","A":"2"}},"annotations":{"b":"1","B":"2"}}'
    assert parse_json(text) == json.loads(text)


@pytest.mark.parametrize(
    "text", [b'{"digest": 1, "Digest": 2}', b'{"size": NaN}', b"\xff", b"[" * 100_000, b"{"]
)
def test_a_document_that_is_not_json_or_is_read_in_two_ways_is_refused(text: bytes) -> None:
    with pytest.raises(
        ValueError, match=r"are one to some tools|NaN is not a number|decode|nested|Expecting"
    ):
        parse_json(text)


def test_an_index_is_a_list_of_descriptors() -> None:
    with pytest.raises(ValueError, match=r"^index\.manifests\[0\]: expected an object, got 1"):
        descriptors(b'{"manifests": [1]}')


def test_a_document_of_any_depth_is_read_or_refused() -> None:
    """The parser and the look at its keys have limits of their own, near one another."""
    for depth in (*range(900, 1020), 3000, 5000, 8000):
        with suppress(ValueError):
            parse_json(b"[" * depth + b"]" * depth)
