"""The README and the pages of docs/ say what the program does: compared both ways."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import subprocess
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner
from packaging.requirements import Requirement

from conftest import GOLDEN
from reprobuild import errors
from reprobuild.cli import cli
from reprobuild.errors import ReprobuildError
from reprobuild.lock.reader import parse_lock
from reprobuild.pipeline.workspace import read_env
from reprobuild.render.image_config import default_image_name
from reprobuild.request import build, model
from reprobuild.request.model import Request
from reprobuild.request.profiles import surroundings, variables

TOP = Path(__file__).resolve().parents[1]
PAGES = {
    str(path.relative_to(TOP)): path.read_text()
    for path in (*TOP.glob("*.md"), *sorted((TOP / "docs").glob("*.md")))
}
"""Every page by its path from the top."""
README, COMMANDS, REQUESTS = (PAGES[name] for name in ("README.md", "docs/commands.md", "docs/requests.md"))
FLAGS = "Flags that make a request"
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")


def section(page: str, title: str) -> str:
    """The text below a heading of a page, up to the next heading."""
    found = re.search(rf"^(##+) {re.escape(title)}\n(.*?)(?=^##|\Z)", PAGES[page], re.MULTILINE | re.DOTALL)
    assert found is not None, f"{page} has no section {title!r}"
    return found[2]


def table(text: str) -> Iterator[list[str]]:
    """The rows of the tables in some text, without their headings."""
    for line in re.findall(r"(?<=\n)\|.*\|$", text, re.MULTILINE):
        cells = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not set(cells[0]) <= set("-"):
            yield cells


def rows(page: str, title: str) -> dict[str, list[str]]:
    return {cells[0].strip("`"): cells[1:] for cells in list(table(section(page, title)))[1:]}


def options(text: str) -> set[str]:
    """The options in the first column of the tables in some text."""
    return {option for cells in table(text) for option in OPTION.findall(cells[0])}


def documented(command: str) -> set[str]:
    return options(section("docs/commands.md", command))


def flags() -> set[str]:
    return options(section("docs/requests.md", FLAGS))


def shell_blocks(text: str) -> str:
    return "".join(re.findall(r"^ *```sh\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL))


def has(command: click.Command) -> set[str]:
    mine = [p for p in command.params if isinstance(p, click.Option)]
    return {name for option in mine for name in (*option.opts, *option.secondary_opts)}


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 200


def test_every_command_has_its_section_and_no_other() -> None:
    titles = re.findall(r"^### reprobuild ([a-z]+)$", COMMANDS, re.MULTILINE)
    assert sorted(titles) == sorted(cli.commands)
    listed = [
        name
        for cells in table(section("README.md", "Commands"))
        for name in re.findall(r"^\[([a-z]+)\]\(docs/commands\.md#reprobuild-\1\)$", cells[0])
    ]
    assert sorted(listed) == sorted(cli.commands)


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_every_option_is_in_help_and_in_the_commands_page(name: str) -> None:
    mine = section("docs/commands.md", f"reprobuild {name}")
    shown = CliRunner().invoke(cli, [name, "--help"]).output.partition("Options:")[2]
    in_help = set(OPTION.findall(re.sub(r"(?<=\S) {2,}.*", "", shown))) - {"-h", "--help"}
    assert in_help == has(cli.commands[name])
    in_page = documented(f"reprobuild {name}")
    if "[the flags that make a request]" in mine:
        assert not in_page & flags()
        in_page |= flags()
    assert in_page == in_help


def test_the_options_before_a_command() -> None:
    assert documented("reprobuild") == has(cli) | {"-h", "--help"}


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_every_command_has_examples(name: str) -> None:
    lines = shell_blocks(section("docs/commands.md", f"reprobuild {name}")).splitlines()
    assert [line for line in lines if line.startswith(f"reprobuild {name}")]


@pytest.mark.parametrize("page", sorted(PAGES))
def test_every_example_parses(page: str) -> None:
    for line in shell_blocks(PAGES[page]).splitlines():
        for call in re.split(r" && ", re.sub(r" +#.*", "", line)):
            found = re.fullmatch(
                r"(?:\S*bin/)?reprobuild ((?:-[vq] )?)([a-z]+) ?(.*?)(?: > .*)?", call.strip()
            )
            if found:
                command = cli.commands[found[2]]
                command.make_context(found[2], shlex.split(found[3]))


@pytest.mark.parametrize("page", sorted(PAGES))
def test_every_snippet_is_of_its_language(page: str) -> None:
    read: dict[str, Callable[[str], object]]
    read = {"yaml": yaml.safe_load, "json": json.loads, "toml": tomllib.loads}
    for language, text in re.findall(
        r"^ *```(yaml|json|toml)\n(.*?)^ *```", PAGES[page], re.MULTILINE | re.DOTALL
    ):
        read[language](textwrap.dedent(text))


@pytest.mark.parametrize("page", ["requests", "self-test", "source-packages"])
def test_every_request_in_a_page_is_read(page: str, tmp_path: Path) -> None:
    """With a CUDA version where a snippet shows only a part, and with the files that it names."""
    (tmp_path / "environment.yml").write_text("channels: [conda-forge]\ndependencies: [pytorch]\n")
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs/h100.json").write_text("[]")
    found = re.findall(r"^```toml\n(.*?)^```", PAGES[f"docs/{page}.md"], re.MULTILINE | re.DOTALL)
    assert found
    for number, text in enumerate(found):
        if "[[packages]]" not in text:  # a part of a lock
            named = re.search(r'^name = "(.*)"', text, re.MULTILINE)
            file = tmp_path / "envs" / f"{named[1] if named else f'page{number}'}.toml"
            file.write_text(text if 'cuda = "' in text else f'cuda = "cpu"\n{text}')
            read_env(str(file))


@pytest.mark.parametrize("page", sorted(PAGES))
def test_every_command_that_a_page_names_exists(page: str) -> None:
    called = re.findall(r"`reprobuild (?:-[vq] )?([a-z]+)", PAGES[page])
    assert set(called) <= set(cli.commands)


@pytest.mark.parametrize("page", sorted(PAGES))
def test_every_option_that_a_page_names_after_a_command_exists(page: str) -> None:
    for name, words in re.findall(r"`reprobuild ([a-z]+) ([^`]*)`", PAGES[page]):
        if name != "run":  # what follows its image belongs to another program
            assert set(OPTION.findall(words)) <= has(cli.commands[name]), words


def test_exit_statuses() -> None:
    kinds = [k for k in vars(errors).values() if inspect.isclass(k) and issubclass(k, ReprobuildError)]
    expected = {str(kind.exit_code): f"`{kind.__name__}`" for kind in kinds if kind is not ReprobuildError}
    assert {
        status: cells[0] for status, cells in rows("docs/errors.md", "Exit status").items() if cells[0]
    } == expected
    assert rows("docs/errors.md", "Exit status").keys() - expected.keys() == {"0", "1", "2", "130"}


def test_keys_of_a_request() -> None:
    keys = {
        *model._KEYS,
        *(f"base.{key}" for key in model._BASE_KEYS),
        *(f"conda.{key}" for key in model._CONDA_KEYS),
        *(f"determinism.{key}" for key in model._DETERMINISM_KEYS),
    } - {
        "base",
        "build",
        "conda",
        "determinism",
    }
    keys |= {"build.apt", *(f"build.NAME.{key}" for key in build.KEYS)}
    found = rows("docs/requests.md", "Keys")
    assert set(found) == keys
    defaults = Request.from_dict({"cuda": "12.1"}, "").to_dict()
    flat = defaults | {f"{k}.{sub}": v for k in ("base", "determinism") for sub, v in defaults[k].items()}
    for key in ("python", "base.debian", "determinism.profile"):
        assert found[key][0] == f'`"{flat[key]}"`'
    assert found["determinism.threads"][0] == f"`{flat['determinism.threads']}`"


def test_variables_of_the_profiles() -> None:
    strict, portable = (
        variables(Request.from_dict({"cuda": "12.1", "determinism": {"profile": profile}}, ""), numpy="2.4.0")
        for profile in ("strict", "portable")
    )
    cells = {
        name: (cells[0].strip("`"), cells[1].strip("`"))
        for name, cells in rows("docs/image-contents.md", "Variables").items()
        if len(cells) == 3
    }
    assert cells == {name: (strict.get(name, ""), portable[name]) for name in portable}
    others = {
        name: cells[0]
        for name, cells in rows("docs/image-contents.md", "Variables").items()
        if len(cells) == 1 and name != "Variable"
    }
    assert set(others) == set(surroundings())
    for name in others.keys() - {"PATH"}:
        assert others[name] == f"`{surroundings()[name]}`"


def test_dependencies() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    assert sorted(rows("docs/architecture.md", "Why each dependency")) == sorted(
        Requirement(d).name for d in project["dependencies"]
    )


def test_names_and_versions_in_the_examples() -> None:
    lock = parse_lock((GOLDEN / "pylock.torch-cu121.toml").read_text(), "golden")
    assert default_image_name(lock) in section("README.md", "What you get")
    for name in ("cuda", "cudnn", "nccl"):
        assert lock.stack[name] in section("README.md", "What you get")


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def links(page: str) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", PAGES[page])


@pytest.mark.parametrize("page", sorted(PAGES))
def test_links_lead_somewhere(page: str) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        if path.startswith("https://"):
            continue
        target = (TOP / page).parent / path if path else TOP / page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(PAGES[str(target.resolve().relative_to(TOP))]), link


def test_every_page_is_linked_from_the_readme() -> None:
    assert PAGES.keys() - {"README.md"} <= {link.partition("#")[0] for link in links("README.md")}


def command(title: str) -> str:
    found = re.search(rf"^<!-- {title} -->\n```sh\n(.*)\n```$", README, re.MULTILINE)
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


def test_ci_takes_the_commands_from_here() -> None:
    scripts = [(TOP / ".ci" / name).read_text() for name in ("run", "bare-root")]
    for name in ("first", "test"):
        argv = [".ci/readme-command", name]
        done = subprocess.run(argv, capture_output=True, text=True, cwd=TOP, check=True)
        assert done.stdout == command(f"the {name} command") + "\n"
        assert any(f"$({argv[0]} {name})" in script for script in scripts)
    script = (TOP / ".ci/run").read_text()
    assert (TOP / ".ci/run").stat().st_mode & 0o111
    # What the first command installs, the tests need as well.
    installed = re.search(r"install -y --no-install-recommends (.*?) &&", command("the first command"))
    assert installed is not None
    assert set(installed[1].split()) <= set(script.split())
