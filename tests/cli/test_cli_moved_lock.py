"""A lock with a source package, moved to a machine of another architecture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conftest import needs
from reprobuild.errors import HostError, ResolveError
from reprobuild.fetch.scheduler import fetch
from reprobuild.pipeline.workspace import read_lock
from reprobuild.sources import workshop
from support.index import Index
from support.python_root import PYTHON, python_root
from support.sdists import sdist, serve, serve_pip

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.family"]

REQUEST = f'cuda = "12.1"\npython = "{PYTHON}"\npackages = ["tool"]\nplatforms = ["linux/amd64"]\n'


def move_to(architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (
        "resolve.resolver",
        "resolve.constraint_loop",
        "pipeline.workspace",
        "pipeline.preflight.emulation",
    ):
        monkeypatch.setattr(f"reprobuild.{module}.architecture", lambda: architecture)


@pytest.mark.slow
def test_it_is_checked_everywhere_and_built_where_it_is_for(
    family: Index, apt: None, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("crun")
    serve_pip(family)
    serve(family, "tool", "1.0", sdist("tool", "1.0"))
    root = python_root(tmp_path / "root")
    monkeypatch.setattr(workshop, "system_folders", lambda *_: [root])

    def without_debian(lock: Any, *rest: Any) -> None:
        fetch(replace(lock, debian=()), *rest)

    monkeypatch.setattr(workshop, "fetch", without_debian)
    Path("envs").mkdir()
    Path("envs/a.toml").write_text(REQUEST)
    move_to("amd64", monkeypatch)
    said = call("lock", "a")
    assert said.status == 0, said.err
    file = Path("envs/pylock.a.toml")
    before = file.read_bytes()
    assert [p.name for p in read_lock(file).python if p.source is not None] == ["tool"]
    move_to("arm64", monkeypatch)
    said = call("lock", "--check")
    assert said.status == 0, said.err
    for command in (("image", str(file)), ("render", str(file), "-o", "context")):
        said = call(*command)
        assert said.status == HostError.exit_code
        assert "the lock is for linux/amd64, but" in said.err
        assert "run it on an x86_64 machine" in said.err
    said = call("render", str(file), "-o", "context", "--no-artifacts")
    assert said.status == 0, said.err
    # What it was built with, and that it is built at all, are of the machine that it was built on.
    for command in (("lock", "a"), ("lock", "--upgrade", "filelock", "a")):
        said = call(*command)
        assert said.status == ResolveError.exit_code
        assert "no wheel for this Python and machine of tool; nothing is built for linux/amd64" in said.err
        assert "lock on a machine of that kind" in said.err
    assert file.read_bytes() == before
    move_to("amd64", monkeypatch)
    assert call("lock", "a").status == 0
    assert file.read_bytes() == before
