"""Settings of tool.uv beside a lock that was made with others. Real locks: test_imports_uv_oracle.py."""

from __future__ import annotations

from typing import Any

import pytest

from reprobuild.imports.stale_uv_settings import other_settings

LINUX = "sys_platform == 'linux'"
METADATA: dict[str, Any] = {"dependency-metadata": [{"name": "A"}]}


def other(uv: dict[str, Any], lock: dict[str, Any]) -> list[str]:
    return [*other_settings(uv, lock, "own", {"a"})]


@pytest.mark.parametrize(
    ("uv", "lock"),
    [
        ({"resolution": "highest"}, {}),
        ({"resolution": "lowest"}, {"options": {"resolution-mode": "lowest"}}),
        ({"environments": [LINUX]}, {"supported-markers": ["platform_system == 'Linux'"]}),
        (METADATA, {"manifest": METADATA}),
        ({"dependency-metadata": [{"name": "not-there"}]}, {}),
        ({"conflicts": [[{"extra": "X"}]]}, {"conflicts": [[{"package": "own", "extra": "x"}]]}),
    ],
)
def test_the_same_settings(uv: dict[str, Any], lock: dict[str, Any]) -> None:
    assert other(uv, lock) == []


@pytest.mark.parametrize(
    ("key", "uv", "lock"),
    [
        ("resolution", {"resolution": "lowest"}, {}),
        ("exclude-newer", {}, {"options": {"exclude-newer": "2026-01-01T00:00:00Z"}}),
        ("required-environments", {"required-environments": [LINUX]}, {}),
        ("dependency-metadata", METADATA, {}),
        ("dependency-metadata", {}, {"manifest": METADATA}),
        ("build-constraint-dependencies", {"build-constraint-dependencies": ["a"]}, {}),
        ("conflicts", {"conflicts": [[{"extra": "x"}, {"group": "g"}]]}, {}),
    ],
)
def test_other_settings_are_named(key: str, uv: dict[str, Any], lock: dict[str, Any]) -> None:
    assert other(uv, lock) == [key]
