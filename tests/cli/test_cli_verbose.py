"""``-q`` and ``-v`` before or after the command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import pytest

from reprobuild.cli import cli

if TYPE_CHECKING:
    from support.commands import Call  # pytest itself imports the plugin


pytest_plugins = ["support.commands"]


def _has_v(command: click.Command) -> bool:
    return any("-v" in option.opts for option in command.params)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_quiet_and_verbose_may_follow_the_command(call: Call, place: int) -> None:
    command = ["images", "--json"]
    for flag, says in (("-q", False), ("--verbose", True)):
        said = call(*command[:place], flag, *command[place:])
        assert (said.status, said.out) == (0, "[]\n")
        assert not (said.err and not says)


@pytest.mark.parametrize("name", sorted(name for name, command in cli.commands.items() if _has_v(command)))
def test_a_command_s_own_v_stays_its_own(call: Call, name: str) -> None:
    assert "Option '-v' requires an argument." in call(name, "-v").err
