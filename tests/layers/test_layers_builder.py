"""lock and store → layers: with toy wheels and a stand-in for Debian here, the whole of it marked real."""

from __future__ import annotations

import random
import stat
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from reprobuild.errors import BuildError
from reprobuild.host.home import Home
from reprobuild.in_image import manifest
from reprobuild.layers import plan as plan_module
from reprobuild.layers import split_large as parts_module
from reprobuild.layers.builder import MANIFEST, BuiltLayer
from reprobuild.layers.cache import LayerCache
from reprobuild.layers.plan import place
from support.building import lock_for
from support.built_layers import TAG, build_all, left_over, unpack
from support.fixtures import fixtures_of
from support.wheels import Item, odd_wheel, put, simple_wheel, wheel_bytes

globals().update(fixtures_of("support.built_layers"))


def digests(layers: Sequence[BuiltLayer]) -> dict[str, str]:
    return {layer.title: layer.cached.layer.digest for layer in layers}


def test_the_layers_hold_what_the_wheels_hold(home: Home, ran: list[str], tmp_path: Path) -> None:
    lock = lock_for(home, [put(home, "odd-name", odd_wheel()), put(home, "toy", simple_wheel("toy"))])
    root = unpack(home, build_all(lock, home), tmp_path / "root")
    site = root / place(lock).site
    assert (site / "toy/__init__.py").read_text() == "NAME = 'toy'\n"
    assert stat.S_IMODE((site / "odd/mine.sh").stat().st_mode) == 0o755
    assert (root / "opt/venv/share/odd/data.txt").exists()
    assert (root / "opt/venv/lib64").is_symlink()
    assert (root / "opt/venv/lib/odd.cmake").read_text() == "through the link\n"
    assert (root / "opt/venv/pyvenv.cfg").exists()
    assert (root / "opt/reprobuild/pylock.toml").read_text() == lock.dump()
    assert left_over(home) == []


def test_the_manifest_tells_of_every_file(home: Home, ran: list[str], tmp_path: Path) -> None:
    lock = lock_for(home, [put(home, "odd-name", odd_wheel())])
    root = unpack(home, build_all(lock, home), tmp_path / "root")
    folders = [f"{root}/{name}" for name in ("opt/venv", "usr")]
    done = subprocess.run([sys.executable, manifest.__file__, *folders], capture_output=True, check=True)
    assert done.stdout.decode().replace(f"{root}/", "/") == (root / MANIFEST).read_text()


def test_the_second_build_runs_nothing(home: Home, ran: list[str]) -> None:
    lock = lock_for(home, [put(home, "toy", simple_wheel("toy"))])
    first = build_all(lock, home)
    # The interpreter once, or a second time for a layer that was written while it made the environment.
    assert ran in (["debian", "interpreter"], ["debian", "interpreter", "interpreter"])
    ran.clear()
    assert build_all(lock, home) == first
    assert ran == []


def test_another_home_another_hour_the_same_digests(
    tmp_path: Path, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for index, cpus in enumerate(({0}, {0, 1})):
        home = Home(tmp_path / str(index))
        monkeypatch.setattr("os.sched_getaffinity", lambda _, cpus=cpus: cpus)
        packages = [put(home, f"toy-{i}", simple_wheel(f"toy-{i}", more="X = {1, 2}\n")) for i in range(5)]
        found.append(digests(build_all(lock_for(home, packages[:: 1 - 2 * index]), home)))
    assert found[0] == found[1]


def test_a_changed_package_is_the_only_one_built(home: Home, ran: list[str]) -> None:
    toys = [put(home, f"toy-{i}", simple_wheel(f"toy-{i}")) for i in range(3)]
    before = digests(build_all(lock_for(home, toys), home))
    ran.clear()
    toys[1] = put(home, "toy-1", simple_wheel("toy-1", "2.0", more="NEW = 1\n"), "2.0")
    after = digests(build_all(lock_for(home, toys), home))
    assert set(after.items()) - set(before.items()) == {
        ("toy-1 2.0", after["toy-1 2.0"]),
        ("reprobuild's own files", after["reprobuild's own files"]),
    }
    assert ran == ["interpreter"]


@pytest.mark.parametrize("harm", ["cut", "gone", "garbage"])
def test_a_damaged_cache_is_built_again(home: Home, ran: list[str], harm: str) -> None:
    lock = lock_for(home, [put(home, "toy", simple_wheel("toy"))])
    first = build_all(lock, home)
    for layer in first[:3]:
        blob = LayerCache(home).blob(layer.cached.layer.digest)
        blob.chmod(0o644)
        if harm == "cut":
            blob.write_bytes(blob.read_bytes()[:10])
        elif harm == "gone":
            blob.unlink()
    if harm == "garbage":
        for path in home.folder("layers").iterdir():
            path.write_text('{"layer": 3}')
    assert build_all(lock, home) == first
    assert all(
        LayerCache(home).blob(y.cached.layer.digest).stat().st_size == y.cached.layer.size for y in first
    )


@pytest.mark.parametrize(
    "data",
    [b"no zip", simple_wheel("toy")[:-40], wheel_bytes("toy", "1", {"../x": ""})],
    ids=["text", "cut", "hostile"],
)
def test_a_bad_artifact_names_its_package_and_leaves_nothing(home: Home, ran: list[str], data: bytes) -> None:
    lock = lock_for(home, [put(home, "toy", data)])
    with pytest.raises(BuildError, match=r"^toy: "):
        build_all(lock, home)
    assert left_over(home) == []


def test_damage_in_the_middle_of_a_wheel_stops_the_build(home: Home, ran: list[str]) -> None:
    data = bytearray(wheel_bytes("toy", "1", {"toy/x.bin": Item(content=bytes(range(256)) * 99, compress=0)}))
    data[5000] ^= 1
    good = put(home, "good", simple_wheel("good"))
    with pytest.raises(BuildError, match=r"toy/x.bin: its bytes in the wheel are damaged"):
        build_all(lock_for(home, [put(home, "toy", bytes(data)), good]), home)
    assert left_over(home) == []
    build_all(lock_for(home, [good]), home)


def test_a_file_that_is_not_what_its_record_says(home: Home, ran: list[str]) -> None:
    record = "toy/a.py,sha256=" + "A" * 43 + ",6\ntoy/b.py,sha256=,6\n"
    data = wheel_bytes("toy", "1", {"toy/a.py": "A = 1\n", "toy/b.py": "B = 1\n"}, record=record)
    lock = lock_for(home, [put(home, "toy", data)])
    with pytest.raises(BuildError, match=r"toy: toy/a\.py is not what the wheel's own RECORD says"):
        build_all(lock, home)
    assert left_over(home) == []
    build_all(replace(lock, request=replace(lock.request, allow_bad_record=("toy",))), home)


def test_a_package_in_parts_is_the_same_package(
    home: Home, ran: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its shipped bytecode goes where its source is, so that ours takes its place in parts too."""
    rng = random.Random(1)
    files: dict[str, bytes | str | Item] = {f"toy/lib{n}.so": rng.randbytes(3000) for n in range(9)}
    files |= {"toy/__init__.py": "NAME = 1\n", f"toy/__pycache__/__init__.{TAG}.pyc": b"shipped"}
    lock = lock_for(
        home, [put(home, "toy", wheel_bytes("toy", "1", files)), put(home, "a", simple_wheel("a"))]
    )
    whole = build_all(lock, home)
    monkeypatch.setattr(plan_module, "PART_BYTES", 10_000)
    monkeypatch.setattr(parts_module, "_RUN", 1000)
    layers = build_all(lock, home)
    parts = [layer for layer in layers if layer.title.startswith("toy 1.0, part ")]
    assert [len(layer.cached.records) > 6 for layer in parts] == [True, True, True]
    assert max(layer.cached.layer.size for layer in parts) < 13_000
    records = [{r for y in each for r in y.cached.records} for each in (whole[:-1], layers[:-1])]
    assert records[0] == records[1]
    files_of = [r.path for y in parts for r in y.cached.records if r.kind == "file"]
    assert len(files_of) == len(set(files_of))
    assert sum(path.endswith(".pyc") for path in files_of) == 1


def test_many_packages_share_layers_with_the_same_result(
    home: Home, ran: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_module, "MOST_WHEEL_LAYERS", 20)
    lock = lock_for(home, [put(home, f"toy-{i}", simple_wheel(f"toy-{i}")) for i in range(24)])
    layers = build_all(lock, home)
    assert len(layers) <= 23
    root = unpack(home, layers, tmp_path / "root")
    found = sorted((root / place(lock).site).glob(f"toy_*/__pycache__/__init__.{TAG}.pyc"))
    assert len(found) == 24
