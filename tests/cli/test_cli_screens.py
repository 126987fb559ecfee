"""What people see and type: -q and -v anywhere, what Docker's users type, errors as JSON, a clock."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from conftest import GOLDEN, needs
from reprobuild.cli import cli
from reprobuild.cli.docker_habits import ARGUMENT_HINTS, COMMAND_HINTS, OPTION_HINTS

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
        (("run", "--gpus", "device=1", "x"), "-e CUDA_VISIBLE_DEVICES=0 chooses"),
        (("run", "-p", "8888:8888", "x"), "network of the host is shared"),
        (("run", "--link", "db", "x"), "network of the host is shared"),
        (("run", "-c", "512", "x"), "`taskset`"),
        (("run", "--cpu-quota", "50000", "x"), "`taskset`"),
        (("run", "--memory-swap", "-1", "x"), "-m limits the memory"),
        (("run", "--attach", "stdout", "x"), "always passed on"),
        (("run", "--arch", "arm64", "x"), "an image runs on its own platform"),
        (("run", "--env-file", ".env", "x"), "-e NAME=VALUE sets a variable"),
        (("run", "--health-cmd", "true", "x"), "nothing watches a run"),
        (("run", "--stop-timeout", "5", "x"), "`timeout` before the command"),
        (("run", "--secret", "x", "x"), "-v SRC:DST[:ro]"),
        (("run", "--umask", "022", "x"), "umask …; exec PROGRAM"),
        (("run", "--tz", "UTC", "x"), "-e TZ=NAME"),
        (("run", "--name", "a", "x"), "nothing of a run is kept"),
        (("run", "--read-only", "x"), "a run changes nothing of its image"),
        (("run", "--platform", "linux/arm64", "x"), "an image runs on its own platform"),
        (("run", "-d", "x"), "nohup"),
        (("images", "-a"), "candidates are listed too"),
        (("images", "--format", "{{.ID}}"), "--json has all fields"),
        (("images", "--filter", "dangling=true"), "--json has all fields"),
        (("images", "--no-trunc"), "--json has whole digests"),
        (("images", "torch"), "`reprobuild inspect NAME` shows one"),
        (("image", "ls"), "`reprobuild images` lists the images"),
        (("image", "inspect", "x"), "`reprobuild inspect` does it"),
        (("image", "prune"), "`reprobuild clean` frees the space"),
        (("container", "ls", "-a"), "there are no containers"),
        (("volume", "ls"), "Docker and Podman have that"),
        (("ps", "-a"), "nothing runs in the background"),
        (("run", "--ulimit", "nofile=1", "x"), "ulimit …; exec PROGRAM"),
        (("run", "--cap-add", "SYS_PTRACE", "x"), "no privileges can be added"),
        (("run", "--security-opt", "x=y", "x"), "no privileges can be added"),
        (("run", "--userns", "keep-id", "x"), "no privileges can be added"),
        (("run", "--add-host", "a:b", "x"), "/etc/hosts"),
        (("run", "--init", "x"), "its first process is an init"),
        (("run", "--pid", "host", "x"), "always its own"),
        (("run", "--hostname", "a", "x"), "always `reprobuild`"),
        (("run", "--pull", "always", "x"), "`reprobuild images`"),
        (("run", "--tmpfs", "/tmp", "x"), "lost afterwards"),
        (("run", "--label", "a=b", "x"), "nothing of a run is kept"),
        (("run", "--group-add", "video", "x"), "-u USER:GROUP"),
        (("twice", "--gpus", "all", "x"), "--gpu require"),
        (("twice", "-it", "--rm", "x"), "omit it: the runs have no terminal"),
        (("remove", "-f", "x"), "nothing to force"),
        (("clean", "-af"), "--all removes every image"),
        (("load", "-i", "x.tar"), "`docker load -i`"),
        (("export", "-o", "x.tar", "x"), "`reprobuild export IMAGE FILE`"),
        (("inspect", "-f", "x", "y"), "--json has all fields"),
        (("push", "-a", "x"), "name one: "),
        (("history", "x"), "`reprobuild inspect`"),
        (("logout",), "`docker logout`"),
        (("version",), "`reprobuild --version`"),
        (("info",), "`reprobuild doctor`"),
        (("buildx", "build", "."), "`reprobuild image`"),
        (("prune",), "`reprobuild clean`"),
        (("compose", "up"), "Docker and Podman have that"),
        (("cp", "a:/x", "y"), "-v $PWD:/work"),
        (("help", "run"), "COMMAND --help"),
    ],
)
def test_what_a_docker_user_types_gets_its_hint(call: Call, argv: tuple[str, ...], hint: str) -> None:
    said = call(*argv)
    assert said.status == 2
    assert hint in " ".join(said.err.split())


@pytest.mark.parametrize("command", ["run", "twice"])
@pytest.mark.parametrize(
    "argv",
    [
        "-h node1 a/b:1 true",
        "-it -hnode1 a/b:1 true",
        "-e A=B -m 8G -h=node1 a/b:1",
        "-ith node1 a/b:1 -- true",
    ],
)
def test_a_host_name_is_not_a_question_for_help(call: Call, command: str, argv: str) -> None:
    """It printed the help, ran nothing, and ended with success."""
    said = call(command, *argv.split())
    assert (said.status, said.out) == (2, "")
    assert "the host name is always `reprobuild`" in " ".join(said.err.split())


@pytest.mark.parametrize("argv", ["-h", "--rm -h", "-h a/b:1", "-e A=-h -h", "--help a/b:1 true"])
def test_help_is_still_shown(call: Call, argv: str) -> None:
    said = call("run", *argv.split())
    assert (said.status, said.out.split()[:3]) == (0, ["Usage:", "reprobuild", "run"])


def test_the_program_s_own_h_is_its_own(call: Call) -> None:
    said = call("run", "none:1", "python3", "train.py", "-h", "x", "y")
    assert "no image" in said.err


OURS = {
    **{name: name for name in ("images", "inspect", "load", "push", "run")},
    "build": "image",
    "history": "inspect",
    "image prune": "clean",
    "rmi": "remove",
    "save": "export",
}
"""Each command of Docker's and Podman's whose options somebody types by habit, with ours."""


@pytest.mark.engines
@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_every_option_of_the_installed_engine_is_ours_or_has_a_hint(call: Call, engine: str) -> None:
    needs(engine)

    def listed(pattern: str, *command: str) -> list[str]:
        text = subprocess.run([engine, *command, "--help"], capture_output=True, text=True, check=True).stdout
        return [word for found in re.findall(pattern, text, re.MULTILINE) for word in found if word]

    assert len(listed(r"^ +(?:(-\w), )?(--[\w-]+)", "run")) > 100
    for theirs, name in OURS.items():
        ours = {option for each in cli.commands[name].params for option in each.opts}
        options = {*listed(r"^ +(?:(-\w), )?(--[\w-]+)", *theirs.split())}
        for option in sorted(options - ours - {"-h", "--help", "-q", "--quiet", "-v"}):
            said = call(name, option, "x")
            assert said.status == 2
            assert f"No such option {option}: " in said.err, f"{engine} {theirs} {option}"
    unknown = {*listed(r"^  (\w[\w-]*)()\*? {2,}")} - {*cli.commands} - {*COMMAND_HINTS}
    assert not unknown


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


def test_a_hint_names_what_there_is() -> None:
    commands = {*cli.commands}
    assert not commands & {*COMMAND_HINTS}
    assert {*OPTION_HINTS, *ARGUMENT_HINTS} <= commands
    for name, hints in OPTION_HINTS.items():
        assert not {option for each in cli.commands[name].params for option in each.opts} & {*hints}
    every = [*COMMAND_HINTS.values(), *(hint for hints in OPTION_HINTS.values() for hint in hints.values())]
    named = {word for hint in every for word in re.findall(r"`reprobuild ([a-z]+)", hint)}
    assert named <= commands


def test_a_request_that_is_called_like_a_command_of_docker_s(call: Call, folder: Path) -> None:
    (folder / "envs").mkdir()
    (folder / "envs/ls.toml").write_text("schema = 99\n")
    assert "envs/ls.toml" in call("image", "ls").err


@pytest.mark.parametrize("command", [[], *([name] for name in cli.commands)])
def test_help_fits_a_terminal_of_80_columns(call: Call, command: list[str]) -> None:
    """Its examples too: what is broken by a terminal cannot be copied from it."""
    said = call(*command, "--help")
    assert [line for line in said.out.splitlines() if len(line) > 80] == []
    for block in re.findall(r"(?m)^  reprobuild .*\\\n.*$", said.out):
        assert block.splitlines()[1].startswith(" " * 6)


WITH_JSON = [
    name for name in cli.commands if any("--json" in each.opts for each in cli.commands[name].params)
]
OWN_ARGUMENTS = ("diff", "replay", "run", "twice")


@pytest.mark.parametrize("name", WITH_JSON)
def test_every_command_s_errors_are_json_where_json_was_asked_for(call: Call, name: str) -> None:
    def error(*argv: str) -> dict[str, str | int]:
        said = call(name, *argv)
        found: dict[str, str | int] = json.loads(said.out)["error"]
        assert (found["status"], said.status != 0) == (said.status, True)
        assert str(found["message"]).split()[0] in said.err
        return found

    assert error("--json", "--nonsense")["kind"] == "NoSuchOption"
    assert error("--nonsense", "x", "--json")["status"] == 2
    needed = sum(isinstance(each, click.Argument) and each.required for each in cli.commands[name].params)
    if needed:
        assert error("--json")["status"] == 2
        assert error(*["./none"] * needed, "--json", *["--output", "x"] * (name == "bundle"))["message"]


def test_a_misspelt_option_of_every_command_is_recognized(call: Call) -> None:
    assert "Did you mean" in (said := call("image", "--quite").err)
    assert "--quiet" in said


@pytest.mark.parametrize("name", cli.commands)
@pytest.mark.parametrize("option", ["-q", "-v", "--quiet", "--verbose"])
def test_quiet_and_verbose_may_follow_the_command(call: Call, name: str, option: str) -> None:
    """But where it is the program's own, or binds a folder: then it says so."""
    said = call(name, option, "--nonsense")
    assert said.status == 2
    if name not in OWN_ARGUMENTS:
        assert "No such option '--nonsense'" in said.err
    elif option != "-v":
        assert f"No such option {option}: write it before the command" in " ".join(said.err.split())
