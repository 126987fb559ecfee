"""Which layers an image has, and when their keys change."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reprobuild.layers import plan as module
from reprobuild.layers.plan import MOST_WHEEL_LAYERS, LayerPlan, place, plan, with_losers
from reprobuild.lock.model import Lock, PythonPackage
from support.locks import LOCK
from support.strategies import locks
from support.wheels import package


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def many(count: int) -> list[PythonPackage]:
    names = ["pip", *(f"package-{i}" for i in range(count - 1))]
    return [package(name, sha256(name), 1000 + i * 7919 % 3571) for i, name in enumerate(names)]


def with_pip(lock: Lock) -> Lock:
    return replace(
        lock, python=[*(p for p in lock.python if p.name != "pip"), package("pip", sha256("pip"), 9)]
    )


def keys(lock: Lock) -> dict[str, str]:
    """The key of each layer, by what is in it."""
    return {layer.kind + "".join(f" {p.name}" for p in layer.packages): layer.key for layer in plan(lock)}


def changed(before: Lock, after: Lock) -> set[str]:
    old, new = keys(before), keys(after)
    return {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def test_the_order_is_from_what_changes_least_to_what_changes_most() -> None:
    layers = plan(LOCK)
    assert [layer.kind for layer in layers[:2]] == ["debian", "environment"]
    names = [p.name for layer in layers[2:] for p in layer.packages]
    cuda = [name for name in names if name.startswith("nvidia-")]
    rest = [name for name in names if name not in (*cuda, "triton", "torch")]
    assert names == [*sorted(cuda), "triton", "torch", *sorted(rest)]
    assert sorted(names) == [p.name for p in LOCK.python]


def test_each_package_has_a_layer_of_its_own() -> None:
    assert {len(layer.packages) for layer in plan(LOCK)[2:]} == {1}
    assert place(LOCK).site == "opt/venv/lib/python3.11/site-packages"


def test_titles_say_what_is_inside() -> None:
    titles = [layer.title for layer in plan(LOCK)]
    assert titles[:2] == [f"Debian bookworm, {len(LOCK.debian)} packages", "/opt/venv for Python 3.11"]
    assert "torch 2.4.1" in titles


@pytest.mark.parametrize("count", [1, 2, 90, 91, 92, 300])
def test_an_image_has_at_most_92_layers(count: int) -> None:
    lock = replace(LOCK, python=many(count))
    layers = plan(lock)
    assert len(layers) <= MOST_WHEEL_LAYERS + 2
    assert MOST_WHEEL_LAYERS + 2 == 92
    assert sorted(p.name for layer in layers for p in layer.packages) == [p.name for p in lock.python]
    assert len({layer.key for layer in layers}) == len(layers)


@pytest.mark.parametrize("count", [30, 300])
def test_a_change_of_a_small_package_touches_one_layer(count: int) -> None:
    lock = replace(LOCK, python=many(count))
    smallest = min((p for p in lock.python if p.name != "pip"), key=lambda p: (p.wheel.size, p.name))
    new = package(smallest.name, sha256("new"), smallest.wheel.size + 1, "2.0")
    python = [new if p == smallest else p for p in lock.python]
    (touched,) = changed(lock, replace(lock, python=python))
    assert f" {smallest.name}" in touched


def test_another_small_package_touches_one_layer() -> None:
    lock = replace(LOCK, python=many(300))
    added = replace(lock, python=[*lock.python, package("tiny", sha256("tiny"), 1)])
    # The layer that it joins, with and without it; that of the last package to be alone may change hands.
    before, after = set(keys(lock).values()), set(keys(added).values())
    assert len(before - after) == len(after - before) == 1


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("epoch", {"epoch": LOCK.epoch + 1}),
    ("variables", {"variables": {"A": "b"}}),
    ("seed", {"request": replace(LOCK.request, seed=7)}),
    ("name", {"request": replace(LOCK.request, name="other")}),
]


@pytest.mark.parametrize(("what", "change"), CHANGES, ids=[name for name, _ in CHANGES])
def test_what_no_file_depends_on_changes_no_key(what: str, change: dict[str, Any]) -> None:
    assert changed(LOCK, replace(LOCK, **change)) == set()


def test_another_interpreter_changes_all_layers() -> None:
    debian = [replace(p, version="9") if p.name == "python3.11-minimal" else p for p in LOCK.debian]
    assert changed(LOCK, replace(LOCK, debian=debian)) == set(keys(LOCK))


def test_another_debian_package_changes_only_debian() -> None:
    debian = [replace(p, sha256="1" * 64) if p.name == "libc6" else p for p in LOCK.debian]
    assert changed(LOCK, replace(LOCK, debian=debian)) == {"debian"}


def test_another_pip_changes_what_it_would_write() -> None:
    python = [replace(p, version="1") if p.name == "pip" else p for p in LOCK.python]
    assert changed(LOCK, replace(LOCK, python=python)) == set(keys(LOCK)) - {"debian", "environment"}


def test_another_format_changes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    before = keys(LOCK)
    monkeypatch.setattr(module, "FORMAT", "next")
    assert not set(before.values()) & set(keys(LOCK).values())


def test_paths_left_to_another_layer_are_in_the_key() -> None:
    layer: LayerPlan = plan(LOCK)[2]
    assert with_losers(layer, []) == layer
    assert len({layer.key, with_losers(layer, ["a"]).key, with_losers(layer, ["a", "b"]).key}) == 3
    assert with_losers(layer, ["b", "a"]) == with_losers(layer, ["a", "b"])


@given(locks().map(with_pip), st.data())
@settings(max_examples=40)
def test_a_key_changes_with_its_wheel_and_with_no_other(lock: Lock, data: st.DataObject) -> None:
    picked = data.draw(st.sampled_from([p for p in lock.python if p.name != "pip"] or [lock.python[0]]))
    wheel = replace(picked.wheel, sha256=sha256(picked.wheel.sha256))
    after = replace(lock, python=[replace(p, wheel=wheel) if p == picked else p for p in lock.python])
    assert changed(lock, after) == {f"wheels {picked.name}"}
    moved = replace(picked.wheel, url="https://elsewhere.example.org/x", uploaded=None)
    after = replace(lock, python=[replace(p, wheel=moved) if p == picked else p for p in lock.python])
    assert changed(lock, after) == set()
