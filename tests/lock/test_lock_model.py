"""The lock: model.py (values, dump, digest) and reader.py (text → lock), as one."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.pylock import Pylock

from conftest import GOLDEN
from reprobuild.errors import LockError
from reprobuild.lock.model import Lock
from reprobuild.lock.reader import parse_lock
from reprobuild.request.model import Request
from support.locks import LOCK, OTHER_FILES, SMALL_TEXT, TEXT
from support.strategies import hashes, locks, sizes


def test_the_golden_lock_is_canonical(golden: Callable[[Path, bytes], None]) -> None:
    golden(GOLDEN / "pylock.torch-cu121.toml", LOCK.dump().encode())


def test_the_golden_lock_is_of_the_default_request() -> None:
    path = Path(__file__).parents[2] / "envs" / "torch-cu121.toml"
    request = Request.parse(path.read_text(), path.name)
    LOCK.check_for(replace(request, torch="2.4.1"), "the golden lock")


def test_the_stack_is_named_plainly() -> None:
    assert LOCK.stack == {
        "cuda": "12.1.105",
        "cudnn": "9.1.0.70",
        "nccl": "2.20.5",
        "numpy": "1.26.4",
        "python": "3.11.2",
        "torch": "2.4.1",
    }
    assert LOCK.version_of("torch") == "2.4.1"
    with pytest.raises(KeyError):
        LOCK.version_of("tensorflow")


def test_packaging_accepts_it_and_finds_the_same_wheels() -> None:
    pylock = Pylock.from_dict(tomllib.loads(TEXT))
    pylock.validate()
    found = {
        (p.name, str(p.version), w.name, w.hashes["sha256"]) for p in pylock.packages for w in p.wheels or ()
    }
    assert found == {(p.name, p.version, p.wheel.filename, p.wheel.sha256) for p in LOCK.python}


def shuffled(value: Any, chance: random.Random) -> Any:
    if isinstance(value, dict):
        items = list(value.items())
        chance.shuffle(items)
        return {key: shuffled(item, chance) for key, item in items}
    if isinstance(value, list):
        chance.shuffle(value := [shuffled(item, chance) for item in value])
    return value


@given(st.randoms(use_true_random=False))
@settings(max_examples=20)
def test_the_dump_is_canonical_when_the_input_is_reordered(chance: random.Random) -> None:
    table = shuffled(tomllib.loads(SMALL_TEXT), chance)
    assert parse_lock(tomli_w.dumps(table), "reordered").dump() == SMALL_TEXT


LEAVES = [
    ("packages", 0, "wheels", 0, "hashes", "sha256"),
    ("packages", 0, "wheels", 0, "size"),
    ("packages", 0, "wheels", 0, "url"),
    ("tool", "reprobuild", "debian", 0, "sha256"),
    ("tool", "reprobuild", "debian", 0, "size"),
    ("tool", "reprobuild", "debian", 0, "version"),
    ("tool", "reprobuild", "epoch"),
    ("tool", "reprobuild", "variables", "NCCL_PROTO"),
    ("tool", "reprobuild", "own-files", "version"),
]


@given(locks(), st.sampled_from(LEAVES), hashes, sizes)
@settings(max_examples=15)
def test_a_well_formed_change_changes_the_digest(
    lock: Lock, leaf: tuple[str | int, ...], sha256: str, size: int
) -> None:
    table = tomllib.loads(replace(lock, own_files=lock.own_files or OTHER_FILES).dump())
    *path, last = leaf
    spot: Any = table
    for part in path:
        spot = spot[part]
    kinds = {
        "sha256": sha256,
        "size": size,
        "epoch": size % 2**33,
        "url": "https://packages.example.org/other.whl",
    }
    value = kinds.get(str(last), "1.2.3")
    if spot.get(last) == value:
        return
    spot[last] = value
    with pytest.raises(
        LockError, match=r"^a.toml: (its content does not match its digest|tool.reprobuild.stack)"
    ):
        parse_lock(tomli_w.dumps(table), "a.toml")


def test_each_part_decides_the_digest() -> None:
    first = LOCK.python[0]
    others = [
        replace(LOCK, epoch=1),
        replace(LOCK, platform="linux/arm64"),
        replace(LOCK, variables={}),
        replace(LOCK, python=LOCK.python[1:]),
        replace(LOCK, debian=LOCK.debian[1:]),
        replace(LOCK, request=replace(LOCK.request, seed=0)),
        replace(LOCK, own_files=OTHER_FILES),
        replace(LOCK, own_files=replace(OTHER_FILES, version="0.0.8")),
        replace(LOCK, python=[replace(first, wheel=replace(first.wheel, uploaded=None)), *LOCK.python[1:]]),
    ]
    assert len({LOCK.digest, *(other.digest for other in others)}) == len(others) + 1


def test_a_lock_for_another_request_is_refused_with_the_keys() -> None:
    with pytest.raises(
        LockError, match=r"a.toml was made for a different request \(torch: 2.4.0, there 2.4.1\)"
    ) as error:
        LOCK.check_for(replace(LOCK.request, torch="2.4.0"), "a.toml")
    assert "reprobuild lock" in error.value.hint


def test_variables_that_the_request_asks_for_are_as_it_says() -> None:
    asked = replace(LOCK.request, environment=(("HF_HOME", "/data"),))
    good = replace(LOCK, request=asked, variables={**LOCK.variables, "HF_HOME": "/data"})
    assert parse_lock(good.dump(), "a").variables["HF_HOME"] == "/data"
    for variables in (LOCK.variables, {**LOCK.variables, "HF_HOME": "/elsewhere"}):
        bad = replace(LOCK, request=asked, variables=variables)
        with pytest.raises(LockError, match=r"variables\.HF_HOME: is not what the request's environment has"):
            parse_lock(bad.dump(), "a")
