"""What people see and type: -q and -v anywhere, what Docker's users type, errors as JSON, a clock."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from conftest import GOLDEN
from reprobuild.cli import cli

if TYPE_CHECKING:
    from support.commands import Call  # pytest itself imports the plugin

pytest_plugins = ["support.commands"]

LOCK = str(GOLDEN / "pylock.torch-cu121.toml")


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (("ps",), "nothing runs in the background"),
        (("rmi", "x"), "reprobuild remove"),
        (("pull", "x"), "docker pull"),
        (("build", "."), "reprobuild image"),
        (("run", "--gpus", "all", "x"), "--gpu require"),
        (("run", "-p", "8888:8888", "x"), "network of the host is shared"),
        (("run", "--name", "a", "x"), "nothing of a run is kept"),
        (("run", "--read-only", "x"), "a run changes nothing of its image"),
        (("run", "--platform", "linux/arm64", "x"), "an image runs on its own platform"),
        (("run", "-d", "x"), "nohup"),
    ],
)
def test_what_a_docker_user_types_gets_its_hint(call: Call, argv: tuple[str, ...], hint: str) -> None:
    said = call(*argv)
    assert said.status == 2
    assert hint in " ".join(said.err.split())


def test_an_error_is_json_where_json_was_asked_for(call: Call) -> None:
    said = call("lock", "--check", "none", "--json")
    error = json.loads(said.out)["error"]
    assert error["status"] == said.status == 3
    assert error["kind"] == "RequestError"
    assert error["message"] in said.err
    assert error["hint"]
    usage = call("image", "--json", "--nonsense")
    assert json.loads(usage.out)["error"]["status"] == usage.status == 2


def test_an_error_after_a_result_adds_no_second_document(call: Call) -> None:
    said = call("doctor", "--json")
    assert isinstance(json.loads(said.out), list)


def test_the_program_s_own_json_is_none_of_ours(call: Call) -> None:
    assert call("run", "none:1", "--", "program", "--json").out == ""


@pytest.mark.parametrize("command", [[], *([name] for name in cli.commands)])
def test_help_fits_a_terminal_of_80_columns(call: Call, command: list[str]) -> None:
    """Its examples too: what is broken by a terminal cannot be copied from it."""
    said = call(*command, "--help")
    assert [line for line in said.out.splitlines() if len(line) > 80] == []
    for block in re.findall(r"(?m)^  reprobuild .*\\\n.*$", said.out):
        assert block.splitlines()[1].startswith(" " * 6)
