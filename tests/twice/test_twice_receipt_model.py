from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from reprobuild.errors import RepeatError
from reprobuild.twice.receipt.model import MOST_BYTES, parse_receipt, read_receipt
from support.receipts import receipt, table


def test_what_is_written_is_read_again_and_has_the_same_digest() -> None:
    found = receipt()
    again = parse_receipt(found.dump(), "b.json")
    assert again == found
    assert again.sha256 == found.sha256
    assert found.dump().decode().splitlines()[1] == ' "receipt": 1,'


FOLDER = {"destination": "/code", "source": ".", "writable": True}
FILE = {"path": "/code/a", "size": 1, "sha256": "0" * 64}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"receipt": 2}, "a receipt of another format"),
        ({"receipt": True}, "a receipt of another format"),
        ({"more": 1}, "more"),
        ({"command": []}, "command: expected 1 to"),
        ({"command": ["", "x"]}, "command: the first word is empty"),
        ({"command": ["a\0b"]}, r"command\[0\]: not valid text"),
        ({"command": ["\ud800"]}, r"command\[0\]: not valid text"),
        ({"workdir": "../.."}, "workdir: '../..' is not a valid workdir"),
        ({"user": "a b"}, "user"),
        ({"network": "no"}, "network"),
        ({"folders": [FOLDER, FOLDER]}, "folders: two with one destination"),
        ({"inputs": [FILE, FILE]}, "inputs: a path is there twice"),
        ({"beside": [FILE, FILE]}, "beside: a path is there twice"),
        ({"folders": [{**FOLDER, "source": "/etc"}]}, r"folders\[0\]\.source: '/etc' is not a valid source"),
        ({"folders": [{**FOLDER, "source": "a/../.."}]}, r"folders\[0\]\.source"),
        ({"folders": [{**FOLDER, "destination": "/a/../b"}]}, r"folders\[0\]\.destination"),
        ({"variables": {"A=B": "x"}}, "variables.A=B: not a name and a text"),
        ({"variables": {"A": 7}}, "variables.A: not a name and a text"),
        ({"inputs": [{**FILE, "path": "a"}]}, r"inputs\[0\]\.path"),
        ({"inputs": [{**FILE, "size": -1}]}, r"inputs\[0\]\.size"),
        ({"inputs": [{**FILE, "sha256": "0"}]}, r"inputs\[0\]\.sha256"),
        ({"inputs": [{**FILE, "lines": "12345"}]}, r"inputs\[0\]\.lines"),
        ({"steps": [{"process": "", "count": 1, "moments": [["a"]]}]}, r"steps\[0\]\.moments\[0\]"),
        ({"status": 256}, "status"),
        ({"stdout": "x"}, "stdout: 'x' is not a SHA-256"),
        ({"image": {**table()["image"], "digest": "latest"}}, "image.digest"),
        ({"image": {**table()["image"], "engine": "lxc"}}, "image.engine"),
        ({"verdict": "parts"}, "verdict"),
    ],
)
def test_what_is_not_of_its_form_is_named(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(RepeatError, match=message):
        receipt(**changed)


@pytest.mark.parametrize("key", [key for key in table() if key != "receipt"])
def test_a_key_that_lacks_is_named(key: str) -> None:
    found = table()
    del found[key]
    with pytest.raises(RepeatError, match=f"a.json: .*{key}.*missing"):
        parse_receipt(json.dumps(found).encode(), "a.json")


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"[]", b"\xff", b'{"receipt": NaN}', b'{"receipt": 1, "receipt": 1}', b"[" * 100_000,
     b'{"receipt": 1' + b"0" * 5000 + b"}", b" " * (MOST_BYTES + 1)],
)  # fmt: skip
def test_what_is_no_receipt_is_refused(data: bytes) -> None:
    with pytest.raises(RepeatError, match=r"a\.json"):
        parse_receipt(data, "a.json")


def test_a_pipe_and_nothing_are_refused(tmp_path: Path) -> None:

    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "none", "."):
        with pytest.raises(RepeatError, match=name):
            read_receipt(tmp_path / name)
