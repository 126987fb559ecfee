"""Write the layer of a wheel while it is read."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from reprobuild.errors import StorageError
from reprobuild.host.home import Home
from reprobuild.layers import wheel_layer as wheel_layer_module
from support.building import lock_for, without_debian
from support.disk import tiny_disk
from support.fixtures import fixtures_of
from support.scheduled import LARGE, arriving, build, digests, toys
from support.wheels import put, wheel_bytes

globals().update(fixtures_of("support.scheduled"))


@pytest.fixture(autouse=True)
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(wheel_layer_module, "LARGE", LARGE)
    return without_debian(monkeypatch)


def test_a_layer_that_was_begun_before_its_paths_were_known_leaves_none_behind(home: Home) -> None:
    """``c`` comes first; that one of its large files is another package's is known only later."""
    lock = toys(home)
    wheels = {p.name: p.wheel.sha256 for p in lock.python}
    order = [wheels["pip"], wheels["c"], *(wheels[name] for name in "fedba")]
    layers = {y.title: y.cached for y in build(lock, home, arriving(lock, order), lay_out=True)}
    assert [r.path for r in layers["c 1.0"].records if "same" in r.path] == []
    assert [r.path for r in layers["a 1.0"].records if "same/l" in r.path] == [
        f"opt/venv/lib/python3.{sys.version_info.minor}/site-packages/same/large.so"
    ]


def test_a_wheel_that_was_there_is_not_written_again(home: Home, ran: list[str]) -> None:
    lock = toys(home)
    before = build(lock, home)
    ran.clear()
    new = put(
        home, "f", wheel_bytes("f", "1", {"f/__init__.py": "changed = 1\n", "f/lib.so": bytes(9 * LARGE)})
    )
    changed = lock_for(home, [p for p in lock.python if p.name not in ("f", "pip")] + [new])
    after = build(changed, home, arriving(changed, [new.wheel.sha256]))
    different = [a.title for a, b in zip(after, before, strict=True) if a.cached != b.cached]
    assert different == ["f 1.0", "reprobuild's own files"]
    assert ran == ["interpreter"]


def test_a_disk_that_fills_while_layers_are_written(tmp_path: Path) -> None:
    """Nothing half-written is left; with room again, the same layers as elsewhere."""
    rng = random.Random(9)
    wheels = [wheel_bytes(f"p{n}", "1", {f"p{n}/lib.so": rng.randbytes(300_000)}) for n in range(4)]
    elsewhere = Home(tmp_path / "elsewhere")
    expected = digests(
        build(lock_for(elsewhere, [put(elsewhere, f"p{n}", w) for n, w in enumerate(wheels)]), elsewhere)
    )
    with tiny_disk(tmp_path / "small", 2 << 20) as small:
        home = Home(small)
        lock = lock_for(home, [put(home, f"p{n}", w) for n, w in enumerate(wheels)])
        order = [p.wheel.sha256 for p in lock.python]
        with pytest.raises(StorageError, match="No space left on device"):
            build(lock, home, arriving(lock, order), lay_out=True)
        assert [*home.folder("tmp").iterdir()] == []
        subprocess.run(["mount", "-o", "remount,size=40m", str(small)], check=True)
        assert digests(build(lock, home, arriving(lock, order), lay_out=True)) == expected
