"""Which wheel's file gets a path in the image."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reprobuild.errors import BuildError
from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.layers.package_files import check_wheels
from reprobuild.layers.plan import place
from support.building import lock_for
from support.built_layers import TAG, build_all, unpack
from support.fixtures import fixtures_of
from support.wheels import Item, put, simple_wheel, toy_lock, toy_pip, wheel_bytes

globals().update(fixtures_of("support.built_layers"))


@pytest.mark.parametrize("same", [True, False])
def test_of_two_wheels_with_one_path_the_first_by_name_wins(
    home: Home, ran: list[str], tmp_path: Path, same: bool
) -> None:
    # The larger is built first, and lies lower or higher by its rank; none of it matters.
    texts = ("WHO = 'same'\n", "WHO = 'same'\n") if same else ("WHO = 'a'\n", "WHO = 'b'\n")
    a = wheel_bytes("alpha", "1", {"shared/who.py": texts[0], "alpha.py": ""})
    b = wheel_bytes("nvidia-b", "1", {"shared/who.py": texts[1], "big.bin": Item(content=bytes(9 << 20))})
    lock = lock_for(home, [put(home, "alpha", a), put(home, "nvidia-b", b)])
    layers = build_all(lock, home)
    site = place(lock).site
    owners = {
        layer.title: {r.path for r in layer.cached.records if r.kind == "file" and "who" in r.path}
        for layer in layers
    }
    both = {f"{site}/shared/who.py", f"{site}/shared/__pycache__/who.{TAG}.pyc"}
    assert {title: paths for title, paths in owners.items() if paths} == {"alpha 1.0": both}
    root = unpack(home, layers, tmp_path / "root")
    assert (root / site / "shared/who.py").read_text() == texts[0]
    assert "shared/who.py" in (root / site / "nvidia_b-1.dist-info/RECORD").read_text()
    # Unless the request says which one.
    other = replace(lock, request=replace(lock.request, file_priority=("nvidia-b",)))
    root = unpack(home, build_all(other, home), tmp_path / "other")
    assert (root / site / "shared/who.py").read_text() == texts[1]


def test_a_file_where_another_package_has_a_folder_is_refused(home: Home, ran: list[str]) -> None:
    a, b = wheel_bytes("a", "1", {"x": "file"}), wheel_bytes("b", "1", {"x/y": "in a folder"})
    lock = lock_for(home, [put(home, "a", a), put(home, "b", b)])
    with pytest.raises(BuildError, match="is a file of a and a folder of another"):
        build_all(lock, home)


def test_a_wheel_for_another_system_is_refused_before_it_is_read(home: Home) -> None:
    """Docker and Podman run pip, which refuses it; the embedded engine named an image."""
    there = put(home, "alpha", simple_wheel("alpha"))
    other = replace(there.wheel, filename="alpha-1.0-cp39-cp39-win_amd64.whl")
    lock = toy_lock([put(home, "pip", toy_pip()), replace(there, wheel=other)])
    with pytest.raises(BuildError, match=r"alpha: the wheel alpha.* is not for Python 3\.11 on linux/amd64"):
        check_wheels(lock, Store(home))
