"""The command ``versions``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from support.index import Index
from support.resolving import LINUX

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.family"]


def test_each_cuda_has_its_newest_torch(family: Index, call: Call) -> None:
    family.add("torch", "2.8.0+cpu", tag=LINUX)
    said = call("versions")
    assert said.out.splitlines() == [
        "CUDA  PYTORCH    DRIVER",
        "13.0  2.9.0      580.65.06",
        "12.4  2.6.0      525.60.13",
        "12.1  2.4.1      525.60.13",
        "11.7  2.0.1      450.80.02",
        "none  2.8.0+cpu  none",
    ]
    assert json.loads(call("versions", "--json").out)[-1] == {
        "cuda": None,
        "torch": "2.8.0+cpu",
        "driver": None,
    }


def test_what_it_names_is_what_a_lock_gets(family: Index, call: Call, apt: None) -> None:
    [cuda, *_] = [row["cuda"] for row in json.loads(call("versions", "--json").out)]
    torch = json.loads(call("lock", "--cuda", cuda, "--json").out)[0]["stack"]["torch"]
    assert {"cuda": cuda, "torch": torch} == {
        key: value for key, value in json.loads(call("versions", "--json").out)[0].items() if key != "driver"
    }


@pytest.mark.parametrize(
    ("python", "status", "said"),
    [("3", 2, "expected a minor version"), ("3.2", 5, "no torch for Python 3.2")],
)
def test_a_python_that_is_none(family: Index, call: Call, python: str, status: int, said: str) -> None:
    found = call("versions", "--python", python)
    assert (found.status, found.out) == (status, "")
    assert said in found.err
