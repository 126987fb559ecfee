"""The pre-commit hook: its entry is run as pre-commit runs it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from conftest import GOLDEN
from support.index import Index

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.family"]

TOP = Path(__file__).resolve().parents[1]


def hooks() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((TOP / ".pre-commit-hooks.yaml").read_text())
    return found


def test_the_hook_lets_a_fitting_lock_through_and_no_other(family: Index, apt: None, call: Call) -> None:
    light, hook = hooks()
    program, *arguments = shlex.split(hook["entry"])
    assert (program, hook["language"], hook["pass_filenames"]) == ("reprobuild", "python", False)
    names = ("entry", "files", "pass_filenames")
    assert [light[name] for name in names] == [hook[name] for name in names]
    assert light["language"] == "system", "pre-commit installs nothing for it"
    assert call("lock", "--cuda", "12.1").status == 0
    asked = len(family.log)
    assert call(*arguments).status == 0
    assert len(family.log) == asked, "it needs no network"
    request = Path("envs/torch-cu121.toml")
    request.write_text(request.read_text().replace('"numpy<2"', '"filelock"'))
    said = call(*arguments)
    assert said.status == 4
    assert "was made for a different request (packages" in said.err


def test_the_hook_runs_for_requests_and_locks() -> None:
    _, hook = hooks()
    for path in ("envs/a.toml", f"envs/{next(GOLDEN.glob('pylock.*')).name}", "environment.yml"):
        assert re.search(hook["files"], path), path
    assert not re.search(hook["files"], "src/a.toml")
