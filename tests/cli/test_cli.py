"""What holds for every command: help, exit status, what goes to which stream, signals, completion."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from reprobuild import __version__, errors
from reprobuild.cli import COMMANDS as LISTED
from reprobuild.cli import cli, images
from reprobuild.errors import ReprobuildError
from reprobuild.host import process
from support.server import serve

if TYPE_CHECKING:
    from support.commands import Call  # pytest itself imports the plugin

pytest_plugins = ["support.commands"]

PROGRAM = Path(sys.executable).with_name("reprobuild")
COMMANDS = sorted(cli.commands.items())


def test_help_lists_every_command_in_whole_lines(call: Call) -> None:
    said = call("--help")
    assert (said.status, said.err) == (0, "")
    assert "..." not in said.out.partition("Commands:")[2]
    for name, _ in COMMANDS:
        assert re.search(rf"^  {name} +\w", said.out, re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "command"), COMMANDS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_help_of_a_command_has_an_example_and_explains_each_option(
    name: str, command: click.Command, call: Call
) -> None:
    said = call(name, "-h")
    assert said.status == 0
    assert re.search(rf"^  reprobuild {name}\b", said.out, re.MULTILINE)
    for option in command.params:
        assert isinstance(option, click.Argument) or getattr(option, "help", None), option.name


def test_version(call: Call) -> None:
    assert call("--version").out == f"reprobuild {__version__}\n"


def test_python_m_is_the_same_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "reprobuild", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"reprobuild {__version__}\n"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["frob"], "No such command 'frob'"),
        (["images", "--frob"], "--frob"),
        (["image"], "pass --cuda 12.1"),
        (["lock"], "`reprobuild lock --cuda 12.1` writes one"),
        (["lock", "--package", "pandas"], "--package: a request also needs --cuda"),
        (["image", "x", "--cuda", "12.1"], "not both"),
        (["lock", "x", "--cuda", "12.1"], "not both"),
        (["lock", "--check", "--upgrade"], "--check writes nothing"),
        (["render", "x"], "--output"),
        (["image", "--cuda", "12.1", "--gpu", "maybe"], "'auto', 'require', 'off'"),
        (["completion", "tcsh"], "'bash', 'zsh', 'fish'"),
    ],
)
def test_bad_arguments_are_status_2_and_say_how(
    argv: list[str], words: str, call: Call, folder: Path
) -> None:
    said = call(*argv)
    assert (said.status, said.out) == (2, "")
    assert words in said.err
    assert not list(folder.iterdir())


KINDS = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, ReprobuildError)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_is_its_exit_status_a_message_and_a_hint(
    kind: type[ReprobuildError], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise kind("it broke at https://user:secret@h.example/x", hint="do this")

    monkeypatch.setattr(images, "ImageStore", fail)
    said = call("images", "--json")
    message = "it broke at https://h.example/x"
    error = {"kind": kind.__name__, "message": message, "hint": "do this", "status": kind.exit_code}
    assert (said.status, json.loads(said.out)) == (kind.exit_code, {"error": error})
    assert said.err == f"reprobuild: {message}\n  hint: do this\n"


def test_an_error_without_a_hint_is_one_line(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise errors.BuildError("it broke")

    monkeypatch.setattr(images, "ImageStore", fail)
    assert call("images").err == "reprobuild: it broke\n"


def test_a_bug_is_status_1_and_asks_for_a_report(
    call: Call, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("https://user:secret@h.example/x")

    monkeypatch.setattr(images, "ImageStore", fail)
    monkeypatch.setattr(sys, "argv", ["reprobuild", "images"])
    from reprobuild.cli import run_command_line

    assert run_command_line() == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "RuntimeError: https://h.example/x" in err
    assert err.endswith(
        "reprobuild: this is a bug in reprobuild\n  hint: please report it with the lines above\n"
    )


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (RuntimeError("can't start new thread"), 7, "reprobuild cannot go on: Resource temporarily"),
        (MemoryError(), 7, "reprobuild cannot go on: Cannot allocate memory"),
        (OSError(errno.EMFILE, os.strerror(errno.EMFILE)), 7, "reprobuild cannot go on: Too many open files"),
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
            11,
            "No space left on device; the system",
        ),
        (OSError(errno.EUCLEAN, os.strerror(errno.EUCLEAN), "/a/b"), 11, "/a/b: Structure needs cleaning"),
        (
            OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN), b"/a/b"),
            11,
            "/a/b: Transport endpoint is not",
        ),
    ],
)
def test_what_the_machine_lacks_is_no_bug(
    call: Call, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, text: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(images, "ImageStore", fail)
    said = call("images")
    assert said.status == status
    assert re.match(rf"reprobuild: {re.escape(text)}.*\n  hint: (allow|end|check|compare) ", said.err)


def test_interrupted_in_python(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(images, "ImageStore", stop)
    said = call("images")
    assert (said.status, said.out, said.err.strip()) == (130, "", "reprobuild: stopped")


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_it_at_once_and_leaves_nothing(number: int, status: int, tmp_path: Path) -> None:
    # The server sends no end of the page, so that the program is surely waiting.
    with serve() as server:
        server.add("/simple/torch/", b"<html>" + b" " * 200_000, stall_at=1000)
        env = {
            **os.environ,
            "UV_DEFAULT_INDEX": f"{server.url}/simple",
            "REPROBUILD_DEBIAN_MIRROR": f"{server.url}/debian",
            "REPROBUILD_DEBIAN_SECURITY_MIRROR": f"{server.url}/debian",
        }
        with subprocess.Popen(
            [PROGRAM, "lock", "--cuda", "12.1"],
            cwd=tmp_path,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            while not server.hits("/simple/torch/"):
                assert process.poll() is None
                time.sleep(0.02)
            process.send_signal(number)
            out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (status, "")
    assert err.endswith("reprobuild: stopped\n")
    assert "Traceback" not in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_streams_that_the_caller_has_closed_are_no_error(tmp_path: Path, closed: str) -> None:
    command = ["sh", "-c", f'"$0" images --json {closed}', str(PROGRAM)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_a_result_that_nobody_can_get_is_an_error(tmp_path: Path, closed: str) -> None:
    command = ["sh", "-c", f'"$0" images --json {closed}', str(PROGRAM)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (11, "")
    assert "Traceback" not in done.stderr
    assert "standard output cannot be written" in done.stderr or "2>&-" in closed


def test_a_closed_pipe_is_no_error_that_is_told(tmp_path: Path) -> None:
    with subprocess.Popen(
        [PROGRAM, "images", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_quiet_and_verbose_talk_on_stderr_only(call: Call) -> None:
    assert "no images" in call("images").err
    assert call("-q", "images").err == ""
    said = call("-v", "images", "--json")
    assert json.loads(said.out) == []


def test_verbose_hides_a_password_among_the_arguments_of_a_process(
    call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    call("-v", "images")
    process.run(["true", "--index-url", "https://me:hunter2@index.example/simple"])
    assert "run: true --index-url https://index.example/simple" in capsys.readouterr().err


def test_the_list_of_commands_says_what_they_say() -> None:
    assert {name: command.get_short_help_str(limit=200) for name, command in COMMANDS} == LISTED


def test_what_click_says_of_an_argument_does_nothing_to_a_terminal(call: Call) -> None:
    argument = "\x1b[2J\u202ehttps://me:hunter2@index.example/"
    for argv in (["clean", argument], [argument], ["run", "--gpu", argument, "x"], [f"--{argument}"]):
        said = call(*argv)
        assert (said.status, said.out) == (2, "")
        assert "Usage: reprobuild" in said.err
        assert not {"\x1b", "\u202e"} & {*said.err}
        assert "hunter2" not in said.err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("imgae", "No such command 'imgae'; did you mean image or images?"),
        ("frobnicate", "No such command 'frobnicate'\n"),
    ],
)
def test_a_command_that_is_not_there(name: str, words: str, call: Call) -> None:
    said = call(name)
    assert (said.status, said.out) == (2, "")
    assert words in said.err


HEAVY = {"requests", "urllib3", "docker", "rich", "jinja2", "conda_lock", "rattler", "yaml", "packaging"}
HEAVY |= {"pypi_simple", "bs4", "pydantic", "debian", "tomli_w", "ssl", "email", "concurrent.futures"}


@pytest.mark.parametrize(
    ("argv", "more"),
    [
        ("--help", "logging subprocess traceback"),
        ("--version", "logging subprocess traceback"),
        ("images", ""),
        ("remove x", ""),
        ("images --frob", ""),
    ],
)
def test_what_a_short_command_does_not_need_is_not_imported(argv: str, more: str, tmp_path: Path) -> None:
    """It stands for the time that they take, which no test could hold on every machine."""
    code = (
        "import sys; sys.argv = ['reprobuild', *sys.argv[1].split()]\n"
        "from reprobuild import cli\n"
        "cli.run_command_line()\n"
        "print('MODULES', *sys.modules, file=sys.stderr)"
    )
    env = {**os.environ, "REPROBUILD_HOME": str(tmp_path)}
    command = [sys.executable, "-c", code, argv]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    loaded = {*done.stderr.partition("MODULES ")[2].split()}
    assert "click" in loaded
    assert (HEAVY | {*more.split()}) & loaded == set()
