"""Pipfile.lock → its pins and hashes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from reprobuild.errors import RequestError
from reprobuild.imports.recognize import read_import
from reprobuild.imports.request_keys import request_table
from support.fixtures import fixtures_of
from support.team_files import PYTORCH, Write

globals().update(fixtures_of("support.team_files"))

HASH = "sha256:" + "a" * 64


@pytest.mark.parametrize(("key", "own"), [("python_version", "3.8"), ("python_full_version", "3.8.10")])
def test_another_python_than_that_of_a_pipfile_lock(write: Write, key: str, own: str) -> None:
    file = write("Pipfile.lock", json.dumps({"_meta": {"requires": {key: own}}}))
    with pytest.raises(
        RequestError, match=rf"_meta\.requires\.{key} is {own}, which Python 3\.11 does not fit"
    ) as caught:
        read_import(file, python="3.11")
    assert caught.value.hint == f"give --python 3.8; or change {key} in the Pipfile, and run `pipenv lock`"
    assert request_table(read_import(file, python="3.8"), {"python": "3.8", "cuda": "cpu"})["python"] == "3.8"


def test_a_pipfile_lock_for_any_python_3(write: Write) -> None:
    lock = {"_meta": {"requires": {"python_version": "3"}}, "default": {"idna": {"version": "==3.7"}}}
    found = read_import(write("Pipfile.lock", json.dumps(lock)))
    assert (found.python, found.requires_python) == (None, "==3.*")
    assert request_table(found, {"cuda": "cpu"})["python"] == "3.11"


PIPFILE: dict[str, Any] = {
    "_meta": {
        "requires": {"python_version": "3.11"},
        "sources": [{"name": "pytorch", "url": f"https://download.{PYTORCH}/whl/cu118", "verify_ssl": True}],
    },
    "default": {
        "numpy": {"version": "==1.26.4", "hashes": [HASH], "index": "pypi"},
        "mac": {"version": "==1", "markers": "sys_platform == 'darwin'"},
        "repo": {"git": "https://h.example/repo.git", "ref": "c" * 40},
        "torch": {"version": "==2.4.1+cu118"},
    },
    "develop": {"pytest": {"version": "==8"}},
}


def test_a_pipfile_lock(write: Write) -> None:
    file = write("Pipfile.lock", json.dumps(PIPFILE))
    table = request_table(read_import(file), {})
    assert (table["python"], table["cuda"], table["index"]) == ("3.11", "11.8", "pytorch")
    repo = f"repo @ git+https://h.example/repo.git@{'c' * 40}"
    assert table["packages"] == ["numpy==1.26.4", repo]
    with_dev = request_table(read_import(file, groups=["dev"]), {})["packages"]
    assert with_dev == ["numpy==1.26.4", "pytest==8", repo]
    assert read_import(file).hashes == {"numpy": frozenset({"a" * 64})}
    with pytest.raises(RequestError, match="no group 'x'"):
        read_import(file, groups=["x"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[" * 100_000, "nested too deeply"),
        ("{", "not valid JSON"),
        ("[]", "expected a table"),
        ('{"default": {"a": {"version": "==1"}, "a": {"version": "==2"}}}', "a key is listed more than once"),
        ('{"default": {"a": 3}}', "default.a: expected a table"),
        ('{"default": {"a": {"version": 3}}}', "expected text"),
        ('{"default": {"a": {"version": "==1", "markers": "("}}}', "default.a.markers"),
        ('{"default": {"a": {"hashes": 3}}}', "expected a list of text"),
        (
            '{"_meta": {"sources": {"url": "https://h.example"}}}',
            "_meta.sources: expected a list",
        ),
        ('{"_meta": {"sources": [{"url": 3}]}}', "expected text"),
        ('{"_meta": {"requires": {"python_version": "x y"}}}', "_meta.requires"),
    ],
)
def test_locks_that_are_none(write: Write, text: str, says: str) -> None:
    with pytest.raises(RequestError, match=re.escape(says)) as caught:
        read_import(write("Pipfile.lock", text))
    assert "Pipfile.lock" in caught.value.message


@pytest.mark.parametrize(("index", "cuda"), [("cpu", "cpu"), ("cu118", "11.8"), (None, None)])
def test_the_index_that_a_pipfile_lock_names_for_torch_counts(
    tmp_path: Path, index: str | None, cuda: str | None
) -> None:
    sources = [{"name": name, "url": f"https://packages.{PYTORCH}/whl/{name}"} for name in ("cpu", "cu118")]
    torch = {"version": "==2.4.1", **({"index": index} if index else {}), "frob": 1}
    default = {"name": "own", "url": "https://pypi." + "org/simple"}
    lock = {"_meta": {"sources": [default, *sources]}, "default": {"torch": torch}}
    (tmp_path / "Pipfile.lock").write_text(json.dumps(lock))
    found = read_import(tmp_path / "Pipfile.lock")
    assert found.cuda == cuda
    assert [line.partition(": ")[2] for line in found.ignored] == [
        "default.torch.frob is ignored: reprobuild does not use it"
    ]
