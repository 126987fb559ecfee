"""The record of layers: one text, and what is refused in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from reprobuild.errors import LockError
from reprobuild.lock.layer_record import LayerRecord, RecordedLayer

LAYERS = [
    RecordedLayer(
        key=digit * 64,
        title=f"package {digit}",
        diff_id="sha256:" + "1" * 64,
        digest="sha256:" + "2" * 64,
        size=5,
        media_type="application/vnd.oci.image.layer.v1.tar+zstd",
        paths="sha256:" + "3" * 64,
        paths_size=7,
    )
    for digit in "fa"
]
RECORD = LayerRecord(images={}, layers={}).with_image("torch linux/amd64", "4" * 64, LAYERS)


def test_a_record_is_read_as_it_was_written() -> None:
    found = LayerRecord.parse(RECORD.dump(), "x")
    assert found == RECORD
    assert found.dump() == RECORD.dump()
    assert found.keys_of("4" * 64) == ("f" * 64, "a" * 64)
    assert found.keys_of("5" * 64) is None


def test_the_text_does_not_tell_in_which_order_it_was_made() -> None:
    ways = []
    for order in (1, -1):
        record = LayerRecord(images={}, layers={})
        for name in ("a", "b")[::order]:
            record = record.with_image(name, "4" * 64, LAYERS)
        ways.append(record.dump())
    assert ways[0] == ways[1]


def _set(*path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(table: dict[str, Any]) -> None:
        for key in path[:-1]:
            table = table[key]
        table[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_set("version", value=2), "version: 2 is not 1"),
        (_set("version", value=True), "version: expected a whole number, got True"),
        (_set("more", value=1), "more: unknown key"),
        (_set("images", value=[]), "images"),
        (_set("images", "torch linux/amd64", "plan", value="x"), "images.torch linux/amd64.plan: 'x'"),
        (_set("images", "torch linux/amd64", "layers", value=["b"]), "'b' is not in the record"),
        (_set("images", "torch linux/amd64", "layers", value=[1]), "layers[0]: "),
        (_set("layers", "short", value={}), "layers.short: the key is not 64"),
        (_set("layers", "a" * 64, value=5), "layers.aaaaaaaaaaaa: expected an object"),
        (_set("layers", "a" * 64, "digest", value="sha256:../../etc"), "digest: 'sha256:../../etc'"),
        (_set("layers", "a" * 64, "size", value=0), "size: 0 "),
        (_set("layers", "a" * 64, "size", value=1 << 60), "size: "),
        (_set("layers", "a" * 64, "paths_size", value=1 << 30), "paths_size: "),
        (_set("layers", "a" * 64, "media_type", value="text/html"), "media_type: 'text/html'"),
    ],
)
def test_what_is_no_record_is_refused(change: Callable[[dict[str, Any]], None], said: str) -> None:
    table = json.loads(RECORD.dump())
    change(table)
    with pytest.raises(LockError) as caught:
        LayerRecord.parse(json.dumps(table).encode(), "envs/layers.json")
    assert caught.value.message.startswith("envs/layers.json: ")
    assert said in caught.value.message


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"version": 1, "version": 1}', b"[" * 99999, b"\xff"])
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(LockError, match=r"envs/layers\.json: "):
        LayerRecord.parse(data, "envs/layers.json")
