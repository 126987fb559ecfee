"""The README says what the program does: compared both ways."""

from __future__ import annotations

import inspect
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from packaging.requirements import Requirement

from conftest import GOLDEN
from reprobuild import errors
from reprobuild.cli import cli
from reprobuild.errors import ReprobuildError
from reprobuild.lock.reader import parse_lock
from reprobuild.render.image_config import default_image_name
from reprobuild.request import model
from reprobuild.request.model import Request
from reprobuild.request.profiles import surroundings, variables

TOP = Path(__file__).resolve().parents[1]
TEXT = (TOP / "README.md").read_text()
FLAGS = "Flags that make a request"
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")


def section(title: str) -> str:
    """The text below a heading, up to the next of its level or above."""
    found = re.search(rf"^(##+) {re.escape(title)}\n(.*?)(?=^##|\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None, f"the README has no section {title!r}"
    return found[2]


def table(text: str) -> Iterator[list[str]]:
    """The rows of the tables in some text, without their headings."""
    for line in re.findall(r"(?<=\n)\|.*\|$", text, re.MULTILINE):
        cells = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not set(cells[0]) <= set("-"):
            yield cells


def rows(title: str) -> dict[str, list[str]]:
    return {cells[0].strip("`"): cells[1:] for cells in list(table(section(title)))[1:]}


def documented(title: str) -> set[str]:
    return {option for cells in table(section(title)) for option in OPTION.findall(cells[0])}


def has(command: click.Command) -> set[str]:
    options = [p for p in command.params if isinstance(p, click.Option)]
    return {name for option in options for name in (*option.opts, *option.secondary_opts)}


def test_every_command_has_its_section_and_no_other() -> None:
    titles = re.findall(r"^### reprobuild ([a-z]+)$", TEXT, re.MULTILINE)
    assert sorted(titles) == sorted(cli.commands)


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_every_option_stands_in_help_and_readme(name: str) -> None:
    mine = section(f"reprobuild {name}")
    shown = CliRunner().invoke(cli, [name, "--help"]).output.partition("Options:")[2]
    in_help = set(OPTION.findall(re.sub(r"(?<=\S) {2,}.*", "", shown))) - {"-h", "--help"}
    assert in_help == has(cli.commands[name])
    in_readme = documented(f"reprobuild {name}")
    if "the flags that make a request" in mine:
        assert not in_readme & documented(FLAGS)
        in_readme |= documented(FLAGS)
    assert in_readme == in_help


def test_the_options_before_a_command() -> None:
    assert documented("reprobuild") == has(cli) | {"-h", "--help"}


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_every_command_has_an_example_that_parses(name: str) -> None:
    [block] = re.findall(r"^```sh\n(.*?)^```", section(f"reprobuild {name}"), re.MULTILINE | re.DOTALL)
    examples = [line for line in block.splitlines() if line.startswith(f"reprobuild {name}")]
    assert examples
    for line in examples:
        words = re.split(r" && | > ", line)[0].split()[2:]
        cli.commands[name].make_context(name, words)


def test_every_line_that_calls_the_program_names_a_command() -> None:
    blocks = "".join(re.findall(r"^```sh\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL))
    called = re.findall(r"(?:^|bin/|&& )reprobuild (?:-v )?([a-z]+)", blocks, re.MULTILINE)
    called += re.findall(r"`reprobuild (?:-v )?([a-z]+)", TEXT)
    assert set(called) == set(cli.commands)


def test_exit_statuses() -> None:
    kinds = [k for k in vars(errors).values() if inspect.isclass(k) and issubclass(k, ReprobuildError)]
    expected = {str(kind.exit_code): f"`{kind.__name__}`" for kind in kinds if kind is not ReprobuildError}
    assert {status: cells[0] for status, cells in rows("Exit status").items() if cells[0]} == expected
    assert rows("Exit status").keys() - expected.keys() == {"0", "1", "2", "130"}


def test_keys_of_a_request() -> None:
    keys = {prefix + key for prefix, names in model._KEYS.items() for key in names} - {
        "base",
        "conda",
        "determinism",
    }
    found = rows("Requests")
    assert set(found) == keys
    defaults = Request.from_dict({"cuda": "12.1"}, "").to_dict()
    flat = defaults | {f"{k}.{sub}": v for k in ("base", "determinism") for sub, v in defaults[k].items()}
    for key in ("python", "base.debian", "determinism.profile"):
        assert found[key][0] == f'`"{flat[key]}"`'
    assert found["determinism.threads"][0] == f"`{flat['determinism.threads']}`"


def test_variables_of_the_profiles() -> None:
    strict, portable = (
        variables(Request.from_dict({"cuda": "12.1", "determinism": {"profile": profile}}, ""))
        for profile in ("strict", "portable")
    )
    cells = {
        name: (cells[0].strip("`"), cells[1].strip("`"))
        for name, cells in rows("Variables").items()
        if len(cells) == 3
    }
    assert cells == {name: (strict.get(name, ""), portable[name]) for name in portable}
    others = {
        name: cells[0] for name, cells in rows("Variables").items() if len(cells) == 1 and name != "Variable"
    }
    assert set(others) == set(surroundings())
    for name in others.keys() - {"PATH"}:
        assert others[name] == f"`{surroundings()[name]}`"


def test_dependencies() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    assert sorted(rows("Why each dependency")) == sorted(Requirement(d).name for d in project["dependencies"])


def test_names_and_versions_in_the_examples() -> None:
    lock = parse_lock((GOLDEN / "pylock.torch-cu121.toml").read_text(), "golden")
    assert default_image_name(lock) in section("What you get")
    for name in ("cuda", "cudnn", "nccl"):
        assert lock.stack[name] in section("What you get")


def test_links_lead_somewhere() -> None:
    titles = [title.lower().replace(" ", "-") for title in re.findall(r"^##+ (.*)$", TEXT, re.MULTILINE)]
    assert set(re.findall(r"\]\(#(.*?)\)", TEXT)) <= set(titles)
    for path in ("envs/torch-cu121.toml", "src/reprobuild/pipeline.py", ".ci/run", "Dockerfile"):
        assert (TOP / path).exists()


def command(title: str) -> str:
    found = re.search(rf"^<!-- {title} -->\n```sh\n(.*)\n```$", TEXT, re.MULTILINE)
    assert found is not None
    return found[1]


def test_set_up_is_two_commands_of_one_line() -> None:
    first, second = command("the first command"), command("the test command")
    assert first.startswith("apt-get update && apt-get install -y ")
    assert first.endswith("reprobuild image --cuda 12.1")
    for tool in ("ruff check", "ruff format --check", "mypy --strict", "pytest"):
        assert f" .venv/bin/{tool}" in second
    for line in (first, second):
        subprocess.run(["bash", "-n", "-c", line], check=True)


def test_ci_takes_the_test_command_from_here() -> None:
    script = (TOP / ".ci/run").read_text()
    line = next(line for line in script.splitlines() if line.startswith("command="))
    show = f'{line}; printf %s "$command"'
    done = subprocess.run(["bash", "-c", show], capture_output=True, text=True, cwd=TOP, check=True)
    assert done.stdout == command("the test command")
    assert (TOP / ".ci/run").stat().st_mode & 0o111
    # What the first command installs, the tests need as well.
    installed = re.search(r"install -y --no-install-recommends (.*?) &&", command("the first command"))
    assert installed is not None
    assert set(installed[1].split()) <= set(script.split())
