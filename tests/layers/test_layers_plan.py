"""Which layers an image has, and when their keys change."""

from __future__ import annotations

import hashlib
import re
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reprobuild.layers import plan as module
from reprobuild.layers.plan import MOST_WHEEL_LAYERS, LayerPlan, place, plan, with_losers
from reprobuild.layers.split_large import PART_BYTES
from reprobuild.lock.base_image import BaseImage, BaseLayer
from reprobuild.lock.model import Lock
from reprobuild.lock.packages import CondaPackage, DebianPackage, PythonPackage, Wheel
from reprobuild.lock.standalone_python import StandalonePython
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
    return {
        layer.kind
        + "".join(f" {p.name}" for p in layer.packages)
        + f" {layer.part}" * (layer.parts > 1): layer.key
        for layer in plan(lock)
    }


def changed(before: Lock, after: Lock) -> set[str]:
    old, new = keys(before), keys(after)
    return {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def test_the_order_is_from_what_changes_least_to_what_changes_most() -> None:
    layers = plan(LOCK)
    assert [layer.kind for layer in layers[:2]] == ["debian", "environment"]
    names = [p.name for layer in layers[2:] if layer.part == 0 for p in layer.packages]
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
    assert "triton 3.0.0" in titles
    assert [title for title in titles if title.startswith("torch ")] == [
        "torch 2.4.1, part 1 of 2",
        "torch 2.4.1, part 2 of 2",
    ]


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


def test_a_large_package_is_cut_and_a_change_of_another_moves_no_cut() -> None:
    large = package("large", sha256("large"), 2 * PART_BYTES + 1)
    lock = replace(
        LOCK, python=[package("pip", sha256("pip"), 9), large, package("other", sha256("other"), 9)]
    )
    parts = [(layer.part, layer.parts) for layer in plan(lock) if layer.packages == (large,)]
    assert parts == [(0, 3), (1, 3), (2, 3)]
    other_ = package("other", sha256("new"), PART_BYTES + 1)
    after = replace(lock, python=[p for p in lock.python if p.name != "other"] + [other_])
    assert changed(lock, after) == {"wheels other", "wheels other 0", "wheels other 1"}


@pytest.mark.parametrize("count", [1, 30, 60, 300])
def test_however_large_packages_are_an_image_has_at_most_92_layers(count: int) -> None:
    large = [package(f"large-{n}", sha256(f"large-{n}"), 4 * PART_BYTES + n) for n in range(count)]
    lock = replace(LOCK, python=[package("pip", sha256("pip"), 9), *large])
    layers = plan(lock)
    assert len(layers) <= MOST_WHEEL_LAYERS + 2
    for each in lock.python:
        found = [(layer.part, layer.parts) for layer in layers if each in layer.packages]
        assert found == [(n, len(found)) for n in range(len(found))]


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


def test_what_is_beneath_is_in_the_key() -> None:
    """A program of the image compiles, so whatever it runs in could change what it makes."""
    debian = [replace(p, sha256="1" * 64) if p.name == "libc6" else p for p in LOCK.debian]
    assert changed(LOCK, replace(LOCK, debian=debian)) == set(keys(LOCK))


def test_another_pip_changes_what_it_would_write() -> None:
    """Its source does, not only its version: another wheel of pip 26.0 must not reach the next lock."""
    python = [
        replace(p, wheel=replace(p.wheel, sha256="1" * 64)) if p.name == "pip" else p for p in LOCK.python
    ]
    assert changed(LOCK, replace(LOCK, python=python)) == set(keys(LOCK)) - {"debian", "environment"}


BASE_LAYERS = tuple(
    BaseLayer(
        digest=f"sha256:{sha256(f'blob {n}')}",
        size=100 + n,
        media_type="application/vnd.oci.image.layer.v1.tar+gzip",
        diff_id=f"sha256:{sha256(f'tar {n}')}",
    )
    for n in range(2)
)
ON_BASE = replace(
    LOCK,
    base=BaseImage(
        image="registry.example/team/base:1",
        index=None,
        manifests={"linux/amd64": f"sha256:{sha256('manifest')}"},
        config=f"sha256:{sha256('config')}",
        created="2024-01-01T00:00:00Z",
        system="Debian GNU/Linux 12 (bookworm)",
        suite="bookworm",
        glibc="2.36",
        python="/usr/local/bin/python3.11",
        python_version="3.11.9",
        cuda=(),
        env={"A": "b"},
        layers=BASE_LAYERS,
    ),
)
CONDA = CondaPackage(
    name="numpy",
    version="1.26.4",
    build="py311_0",
    subdir="linux-64",
    url="https://conda.example/forge/linux-64/numpy-1.26.4-py311_0.conda",
    sha256=sha256("conda"),
    md5=None,
    size=9,
    depends=("python >=3.11",),
)
WITH_CONDA = replace(LOCK, conda=(CONDA, replace(CONDA, name="pip", sha256=sha256("conda's pip"))))

WITH_STANDALONE = replace(
    LOCK,
    standalone=StandalonePython(
        version="3.11.9",
        url="https://index.example/python.tar.gz",
        sha256=sha256("python"),
        size=9,
    ),
)

NONE: frozenset[str] = frozenset()
WHEELS = frozenset({"wheels"})
ABOVE = WHEELS | {"environment"}
FROM_CONDA = ABOVE | {"conda"}
FROM_STANDALONE = ABOVE | {"python"}
FROM_DEBIAN = FROM_STANDALONE | {"debian"}
FROM_BASE = FROM_DEBIAN | {"base"}
REACHES: dict[type, dict[str, frozenset[str]]] = {
    # Field → the kinds of layers whose bytes can differ with it.
    Lock: {
        "request": ABOVE,  # by its Python
        "platform": FROM_DEBIAN | FROM_CONDA,
        "epoch": NONE,
        "python": WHEELS,
        "debian": FROM_DEBIAN,
        "variables": NONE,
        "conda": FROM_CONDA,
        "gpu_targets": NONE,
        "base": FROM_BASE,
        "standalone": FROM_STANDALONE,
        "build": NONE,  # in no layer; what comes of it is the wheel
        "own_files": NONE,
    },
    PythonPackage: {"name": WHEELS, "version": WHEELS, "wheel": WHEELS, "source": NONE},
    # Address and size are held when it is fetched, and stand in no layer but reprobuild's own.
    Wheel: {"filename": WHEELS, "url": NONE, "sha256": WHEELS, "size": NONE, "uploaded": NONE},
    DebianPackage: {
        **dict.fromkeys(("name", "version", "architecture", "path", "sha256"), FROM_DEBIAN),
        **dict.fromkeys(("archive", "size"), NONE),
    },
    CondaPackage: {
        **dict.fromkeys(("name", "version", "build", "subdir", "url", "sha256"), FROM_CONDA),
        **dict.fromkeys(("md5", "size", "depends", "uploaded", "constrains"), NONE),
    },
    StandalonePython: {
        "sha256": FROM_STANDALONE,
        **dict.fromkeys(("version", "url", "size"), NONE),
    },
    BaseLayer: {
        **dict.fromkeys(("digest", "media_type", "diff_id"), FROM_BASE),
        "size": NONE,
    },
    BaseImage: {
        **dict.fromkeys(("image", "index", "manifests", "config", "created", "system"), NONE),
        **dict.fromkeys(("glibc", "python_version", "cuda", "env"), NONE),
        "suite": FROM_DEBIAN,
        "python": ABOVE,
        "layers": FROM_BASE,
    },
}
"""Of every field of a lock. A new one is to be decided on here."""


def other(value: Any) -> Any:
    """Return another value of the same form."""
    if isinstance(value, str) and re.fullmatch(r"(sha256:)?[0-9a-f]{64}", value):
        return value[:-64] + sha256(value)
    return f"{value}9" if isinstance(value, str) else value + 1 if isinstance(value, int) else ("x",)


@pytest.mark.parametrize("kind", REACHES, ids=lambda kind: kind.__name__)
def test_every_field_is_decided_on(kind: type) -> None:
    assert {field.name for field in fields(kind)} == set(REACHES[kind])


def variants(kind: type, name: str) -> list[tuple[Lock, Lock]]:
    """Return pairs of locks that differ in one field of one thing."""

    def one(thing: Any) -> Any:
        return replace(thing, **{name: other(getattr(thing, name))})

    base = ON_BASE.base
    assert base is not None
    if kind is BaseImage:
        return [(ON_BASE, replace(ON_BASE, base=one(base)))]
    if kind is BaseLayer:
        layers = (one(BASE_LAYERS[0]), BASE_LAYERS[1])
        return [(ON_BASE, replace(ON_BASE, base=replace(base, layers=layers)))]
    if kind is CondaPackage:
        return [(WITH_CONDA, replace(WITH_CONDA, conda=(one(CONDA), WITH_CONDA.conda[1])))]
    if kind is StandalonePython:
        assert WITH_STANDALONE.standalone is not None
        return [(WITH_STANDALONE, replace(WITH_STANDALONE, standalone=one(WITH_STANDALONE.standalone)))]
    if kind is DebianPackage:
        return [(LOCK, replace(LOCK, debian=[one(LOCK.debian[0]), *LOCK.debian[1:]]))]
    picked = LOCK.python[0]
    changed_ = one(picked) if kind is PythonPackage else replace(picked, wheel=one(picked.wheel))
    return [(LOCK, replace(LOCK, python=[changed_, *LOCK.python[1:]]))]


FIELDS = [
    (kind, name)
    for kind, names in REACHES.items()
    for name in names
    if kind is not Lock and name not in ("wheel", "source", "layers", "manifests", "env", "uploaded")
]


@pytest.mark.parametrize(("kind", "name"), FIELDS, ids=lambda value: getattr(value, "__name__", value))
def test_locks_that_differ_in_a_field_that_reaches_a_layer_share_no_such_layer(kind: type, name: str) -> None:
    for before, after in variants(kind, name):
        touched = {what.partition(" ")[0] for what in changed(before, after)}
        there = {layer.kind for layer in plan(before)}
        assert touched == REACHES[kind][name] & there


def test_another_python_or_platform_shares_no_layer_that_depends_on_it() -> None:
    other_python = replace(LOCK, request=replace(LOCK.request, python="3.12"))
    assert changed(LOCK, other_python) >= set(keys(LOCK)) - {"debian"}
    assert changed(LOCK, replace(LOCK, platform="linux/arm64")) == set(keys(LOCK))


def test_a_base_is_in_the_key_of_all_that_its_programs_make() -> None:
    """Also where Debian brings the Python: it runs with the base's libraries and files."""
    base = ON_BASE.base
    assert base is not None
    without_python = replace(ON_BASE, base=replace(base, python="", python_version=""))
    assert set(keys(LOCK).values()).isdisjoint(keys(without_python).values())


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
    assert {what.split()[1] for what in changed(lock, after)} == {picked.name}
    moved = replace(picked.wheel, url="https://elsewhere.example.org/x", uploaded=None)
    after = replace(lock, python=[replace(p, wheel=moved) if p == picked else p for p in lock.python])
    assert changed(lock, after) == set()
