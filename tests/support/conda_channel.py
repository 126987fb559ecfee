"""A channel of conda packages on loopback, and requests to it.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reprobuild.lock.model import Lock
from reprobuild.lock.reader import parse_lock
from support.channel import Channel, serve_channel, small_forge
from support.index import Index


@pytest.fixture
def forge(
    family: Index, apt: None, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Channel]:
    """A channel by the name of "forge", beside the index with wheels."""
    with serve_channel(tmp_path / "channels/forge") as channel:
        small_forge(channel)
        channel.index()
        monkeypatch.setenv("HOME", str(tmp_path))
        # Its parent stands for the place where all channels are.
        with serve_channel(tmp_path / "channels") as alias:
            monkeypatch.setenv("CONDA_CHANNEL_ALIAS", alias.url)
            yield channel


def write(text: str, name: str = "a") -> None:
    Path("envs").mkdir(exist_ok=True)
    Path(f"envs/{name}.toml").write_text(text)


def conda(specs: list[str], **keys: Any) -> str:
    """A request's text."""
    lines = [f"{key.replace('_', '-')} = {value}" for key, value in {"cuda": '"12.1"', **keys}.items()]
    return "\n".join([*lines, "[conda]", 'channels = ["forge"]', f"packages = {json.dumps(specs)}"])


def lock_of(name: str = "a") -> Lock:
    return parse_lock(Path(f"envs/pylock.{name}.toml").read_text(), name)


def versions(lock: Lock) -> dict[str, str]:
    return {p.name: f"{p.version} {p.build}" for p in lock.conda}
