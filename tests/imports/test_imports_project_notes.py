"""What a tool would install counts, is refused, or is named: nothing is left out in silence."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from reprobuild.errors import RequestError
from reprobuild.imports import nested_sources
from reprobuild.imports.recognize import Imported, read_import
from reprobuild.imports.request_keys import request_table
from support.fixtures import fixtures_of

globals().update(fixtures_of("support.team_files"))

Files = Mapping[str, str]
Read = Callable[..., tuple[Imported, dict[str, Any]]]
POETRY = '[tool.poetry]\nname = "ours"\n[tool.poetry.dependencies]\npython = "^3.11"\nsix = "*"\n'


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read the first of some files; returns what it says and the keys of the request."""

    def reader(files: Files, *extras: str, groups: tuple[str, ...] = ()) -> tuple[Imported, dict[str, Any]]:
        (tmp_path / ".git").mkdir(exist_ok=True)
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        found = read_import(
            tmp_path / next(iter(files)), extras=extras, groups=groups, hosts={"index.example"}
        )
        return found, request_table(found, {"cuda": "cpu"})

    return reader


def _script(body: str) -> str:
    return "".join(f"# {line}\n" for line in ("/// script", *body.splitlines(), "///"))


SIX = '[project]\nname = "ours"\ndependencies = ["six"]\n'
NAMED: list[tuple[Files, str]] = [
    ({"r.txt": "six\n--pre\n"}, "r.txt:2: --pre is ignored"),
    ({"r.txt": "--no-binary :all:\nsix\n"}, "r.txt:1: --no-binary :all: is ignored"),
    ({"r.txt": "--only-binary=numpy\nsix\n"}, "r.txt:1: --only-binary numpy is ignored"),
    ({"r.txt": "--prefer-binary\nsix\n"}, "r.txt:1: --prefer-binary is ignored"),
    ({"r.txt": "--no-index\nsix\n"}, "r.txt:1: --no-index is ignored"),
    ({"r.txt": 'six --global-option="-x"\n'}, "r.txt:1: --global-option is ignored"),
    (
        {"r.txt": "-c c.txt\nsix\n", "c.txt": "idna @ https://files.example/idna-3-py3-none-any.whl\n"},
        "c.txt:1: the constraint idna @ https://files.example/idna-3-py3-none-any.whl is ignored",
    ),
    (
        {"environment.yml": "channels: [conda-forge]\ndependencies:\n  - pip:\n    - six\n    - --pre\n"},
        "environment.yml: pip: --pre is ignored",
    ),
    (
        {"pyproject.toml": f'{SIX}[tool.hatch.envs.default]\ndependencies = ["idna"]\n'},
        "tool.hatch.envs.default.dependencies is ignored",
    ),
    (
        {"pyproject.toml": f'{SIX}[[tool.rye.sources]]\nname = "default"\nurl = "https://index.example"\n'},
        "tool.rye.sources is ignored",
    ),
    ({"pyproject.toml": f"{POETRY}[tool.uv]\npackage = false\n"}, "tool.uv is ignored"),
    (
        {
            "pyproject.toml": f"{POETRY}[[tool.poetry.source]]\n"
            'name = "s"\nurl = "https://index.example/"\npriority = "supplemental"\n'
        },
        "tool.poetry.source[0].priority (supplemental) is ignored",
    ),
    (
        {"pyproject.toml": f'{POETRY}[tool.poetry.group.a]\nfrobnicate = true\ndependencies.idna = "*"\n'},
        "tool.poetry.group.a.frobnicate is ignored",
    ),
    (
        {"pyproject.toml": SIX, "hatch.toml": '[envs.default]\ndependencies = ["idna"]\n'},
        "hatch.toml: envs.default.dependencies is ignored",
    ),
    *(
        (
            {"pyproject.toml": f'{SIX}[tool.pip-tools{table}]\n{key} = ["x"]\n'},
            f"tool.pip-tools{table}.{key} is ignored",
        )
        for table, key in (
            *(
                (".compile", "constraint"),
                (".compile", "extra"),
                ("", "extra-index-url"),
                ("", "constraints"),
            ),
            *((".sync", "pip-args"), ("", "unsafe_package")),
        )
    ),
    (
        {"pyproject.toml": SIX, ".pip-tools.toml": "[tool.pip-tools.compile]\npre = true\n"},
        ".pip-tools.toml: tool.pip-tools.compile.pre is ignored",
    ),
    (
        {"pyproject.toml": f'{SIX}[tool.rye]\ndev-dependencies = ["idna"]\n'},
        "tool.rye.dev-dependencies is ignored",
    ),
    *(
        (
            {"pyproject.toml": f'{SIX}[tool.pdm.options]\n{command} = ["-G", "x"]\n'},
            f"tool.pdm.options.{command} is ignored",
        )
        for command in ("lock", "install")
    ),
    ({"s.py": _script('dependencies = ["six"]\nfrobnicate = 1')}, "s.py: frobnicate is ignored"),
]


@pytest.mark.parametrize(("files", "line"), NAMED, ids=[line.partition(": ")[2] or line for _, line in NAMED])
def test_what_has_no_say_is_named(read: Read, files: Files, line: str) -> None:
    found, _ = read(files)
    assert any(line in each for each in found.ignored), found.ignored


REFUSED: list[tuple[Files, str, str]] = [
    (
        {"pyproject.toml": "[tool.flit.metadata]\nmodule = 'ours'\nrequires = ['six']\n"},
        "",
        "tool.flit.metadata.requires: requirements in Flit's old form are not read",
    ),
    (
        {"pyproject.toml": SIX, "pdm.toml": "[pypi]\nurl = 'https://other.example/simple'\n"},
        "",
        "pdm.toml: pypi.url: --index-url: the index is a setting of the machine",
    ),
    (
        {"pyproject.toml": SIX, "pdm.toml": "[pypi.more]\nurl = 'https://other.example/simple'\n"},
        "",
        "pdm.toml: pypi.more.url: --extra-index-url: the index is a setting of the machine",
    ),
    ({"r.txt": "torch==${VERSION}\n"}, "", "{VERSION} is a variable of the environment, which pip replaces"),
    (
        {
            "pyproject.toml": "[project]\nname = 'ours'\n"
            'dynamic = ["dependencies", "optional-dependencies"]\n'
            '[tool.setuptools.dynamic]\ndependencies = { file = "r.txt" }\n'
            'optional-dependencies.dev = { file = "r.txt" }\n',
            "r.txt": "six\n",
        },
        "nope",
        "no extra 'nope'",
    ),
    (
        {
            "pylock.toml": "lock-version = '1.0'\ncreated-by = 'x'\npackages = []\n"
            "environments = [\"sys_platform == 'win32'\"]\n"
        },
        "",
        "environments: none is for linux on x86_64 with Python 3.11",
    ),
    (
        {
            "pylock.toml": 'lock-version = "1.0"\ncreated-by = "x"\n[[packages]]\nname = "six"\n'
            'version = "1"\nrequires-python = "<3.9"\nwheels = [{ url = "https://files.example/'
            f'six-1-py3-none-any.whl", hashes = {{ sha256 = "{"0" * 64}" }} }}]\n'
        },
        "",
        "six 1 requires Python <3.9, not 3.11",
    ),
]


@pytest.mark.parametrize(("files", "extra", "why"), REFUSED, ids=[why for *_, why in REFUSED])
def test_what_cannot_be_what_the_tool_installs_is_refused(
    read: Read, files: Files, extra: str, why: str
) -> None:
    with pytest.raises(RequestError) as caught:
        read(files, *filter(None, [extra]))
    assert why in caught.value.message


HATCH = "[tool.hatch.metadata.hooks.requirements_txt]\nfiles = []\noptional-dependencies.Dev_x = ["
SETUP = "from setuptools import setup\nsetup(name='ours', {})\n"
COUNTED: list[tuple[str, Files, str, list[str]]] = [
    (
        "the project's own folder as Rye names it",
        {"requirements.lock": "-e file:.\nidna==3.4\n", "pyproject.toml": SIX},
        "",
        ["ours @ ..", "idna==3.4"],
    ),
    (
        "a constraint holds under the marker of what is asked for",
        {"r.txt": "-c c.txt\nsix\nidna; sys_platform == 'win32'\n", "c.txt": "idna==3.6\nsix<2\n"},
        "",
        ["six", "six<2"],
    ),
    (
        "an extra that hatch's hook reads from a file",
        {
            "pyproject.toml": '[project]\nname = "ours"\ndynamic = ["optional-dependencies"]\n'
            f'dependencies = []\n{HATCH}"r.txt"]\n',
            "r.txt": "six\n",
        },
        "dev-x",
        ["six"],
    ),
    (
        "an extra of Poetry's in another spelling",
        {
            "pyproject.toml": f'{POETRY}Typing_Extensions = {{ version = "*", optional = true }}\n'
            '[tool.poetry.extras]\nE_x = ["typing-extensions"]\n'
        },
        "e.x",
        ["six", "Typing_Extensions"],
    ),
    (
        "requirements of setup() under a marker alone",
        {
            "setup.py": SETUP.format(
                "install_requires=['six'], extras_require={\":python_version>'3'\": ['idna'], "
                "\"t:python_version<'3'\": ['gone'], \"T:python_version>'3'\": ['tqdm'], 't': ['attrs']}"
            )
        },
        "t",
        ["six", "idna", "attrs", "tqdm"],
    ),
    (
        "setup() before the setup.cfg beside it",
        {
            "setup.py": SETUP.format("install_requires=['six']"),
            "setup.cfg": "[options]\ninstall_requires =\n  idna\n",
        },
        "",
        ["six"],
    ),
    (
        "the project table before the setup.py beside it",
        {"setup.py": SETUP.format("install_requires=['idna']"), "pyproject.toml": SIX},
        "",
        ["six"],
    ),
]


@pytest.mark.parametrize(
    ("files", "extra", "packages"), [each[1:] for each in COUNTED], ids=[c[0] for c in COUNTED]
)
def test_what_the_tool_installs_counts(read: Read, files: Files, extra: str, packages: list[str]) -> None:
    assert read(files, *filter(None, [extra]))[1]["packages"] == packages


def test_a_group_of_poetrys_counts_with_those_that_it_includes(read: Read) -> None:
    text = (
        f'{POETRY}[tool.poetry.group.a.dependencies]\nidna = "*"\n[tool.poetry.group.o]\noptional = true\n'
        'dependencies.attrs = "*"\n[tool.poetry.group.B]\ninclude-groups = ["a", "o"]\n'
        'dependencies.tqdm = "*"\n'
    )
    found, keys = read({"pyproject.toml": text}, groups=("b",))
    assert keys["packages"] == ["six", "tqdm", "idna", "attrs"]
    assert found.applied == ()
    found, _ = read({"pyproject.toml": text})
    (line,) = found.applied
    assert "without a, b, groups that `poetry install` installs: --group a --group b includes them" in line
    # The same where the standard's table has the project's own.
    text = text.replace("[tool.poetry.dependencies]\n", f"{SIX}[tool.poetry.dependencies]\n")
    assert read({"pyproject.toml": text}, groups=("b",))[1]["packages"] == ["six", "tqdm", "idna", "attrs"]


def test_both_ranges_of_pythons_count(read: Read) -> None:
    text = '[project]\nrequires-python = "<3.11,>=3.9"\ndynamic = ["dependencies"]\n'
    _, keys = read({"pyproject.toml": text + POETRY.replace("^3.11", ">=3.10")})
    assert keys["python"] == "3.10"


def test_computed_requirements_are_asked_of_the_build_whatever_the_setup_cfg_says(read: Read) -> None:
    computed = (
        "install_requires=open('r').read()",
        "extras_require=dict([(\":os_name=='posix'\", ['idna'])])",
    )
    for argument in computed:
        found, keys = read(
            {"setup.py": SETUP.format(argument), "setup.cfg": "[options]\ninstall_requires = six\n"}
        )
        assert keys["packages"] == ["ours @ .."]
        assert found.places == {"ours": found.origin}
        (line,) = found.applied
        assert line.endswith("computes its requirements, so the project itself has to be built to learn them")


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("[tool.uv]\npackage = false", "without dev, a group that `uv sync` installs"),
        ("[tool.uv]\ndefault-groups = 'all'", "without dev, lint, groups that `uv sync` installs"),
        ("[tool.uv]\ndefault-groups = []", ""),
        (
            "[tool.pdm.dev-dependencies]\nmore = ['tqdm']",
            "without more, dev, lint, groups that `pdm install`",
        ),
        ("", ""),
    ],
)
def test_groups_that_the_tool_installs_unasked_are_named(read: Read, tool: str, said: str) -> None:
    groups = '[dependency-groups]\ndev = ["idna"]\nlint = ["idna"]\n'
    found, _ = read({"pyproject.toml": f"{SIX}{groups}{tool}\n"})
    assert len(found.applied) == bool(said)
    assert said in "".join(found.applied)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.uv]\ndefault-groups = 3\n", "tool.uv.default-groups: expected a list of names"),
        ('[tool.uv]\ndefault-groups = "dev"\n', "tool.uv.default-groups: expected a list of names"),
        ("[tool.uv]\ndefault-groups = [3]\n", "tool.uv.default-groups: expected a list of names"),
        ("[tool.poetry]\nsource = 3\n", "tool.poetry.source: expected tables"),
        ("[tool.poetry]\nsource = [3]\n", "tool.poetry.source: expected tables"),
        ('[tool.uv.sources]\nidna = {path = "sub"}\n', "'!!' is not a requirement"),
    ],
)
def test_what_is_of_another_form_is_refused_by_its_place(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    own = '[project]\nname = "{}"\nversion = "1"\ndependencies = ["{}"]\n'
    nested = own.format("idna", "!!") + '[tool.uv.sources]\nsix = {path = "six"}\n'
    (tmp_path / "sub/pyproject.toml").write_text(nested)
    (tmp_path / "pyproject.toml").write_text(own.format("x", "idna") + text)
    with pytest.raises(RequestError, match=re.escape(said)):
        read_import(tmp_path / "pyproject.toml")


def test_folders_beyond_the_limit_are_an_error_and_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nested_sources, "_MOST_FOLDERS", 3)
    for number in range(5):
        folder = tmp_path / f"p{number}"
        folder.mkdir()
        (folder / "pyproject.toml").write_text(
            f'[project]\nname = "p{number}"\nversion = "1"\ndependencies = ["p{number + 1}"]\n'
            f'[tool.uv.sources]\np{number + 1} = {{path = "../p{number + 1}"}}\n'
        )
    (tmp_path / "p5").mkdir()
    with pytest.raises(RequestError, match="more than 3 folders"):
        read_import(tmp_path / "p0/pyproject.toml")


def test_a_folder_in_a_group_of_pdms_counts(read: Read) -> None:
    own = '[project]\nname = "sub"\nversion = "1"\n'
    for line in (
        "-e file:///${PROJECT_ROOT}/sub#egg=sub",
        "--editable ./sub",
        "sub @ file:///${PROJECT_ROOT}/sub",
    ):
        text = f'{SIX}[tool.pdm.dev-dependencies]\nt = ["idna", "{line}"]\n'
        _, keys = read({"pyproject.toml": text, "sub/pyproject.toml": own}, groups=("t",))
        assert keys["packages"] == ["six", "idna", "sub @ ../sub"]


def test_a_missing_folder_in_a_group_of_pdms_is_named_in_its_table_where_the_group_counts(read: Read) -> None:
    text = f"{SIX}[tool.pdm.dev-dependencies]\nt = ['-e ./gone']\n"
    assert read({"pyproject.toml": text})[1]["packages"] == ["six"]
    with pytest.raises(RequestError, match=r"tool\.pdm\.dev-dependencies\.t\[0\]: .*gone: no such folder"):
        read({"pyproject.toml": text}, groups=("t",))


def test_what_else_could_be_imported_is_named_where_a_project_has_no_dependencies(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text('[project]\nname = "a"\n[dependency-groups]\nrlds = ["six"]\n')
    (tmp_path / "environment.yml").write_text("dependencies: [python]\n")
    with pytest.raises(RequestError, match="no dependencies") as caught:
        read_import(file)
    assert caught.value.hint == (
        f"import what conda has: --from {tmp_path}/environment.yml; or name a group with --group: rlds"
    )
    with pytest.raises(RequestError, match="no extra 'RLDS'") as caught:
        read_import(file, extras=["RLDS"])
    assert caught.value.hint == "it is a group: --group rlds"


def test_a_setup_file_without_dependencies_names_the_environment_beside_it(tmp_path: Path) -> None:
    (tmp_path / "setup.cfg").write_text("[metadata]\nname = a\n")
    (tmp_path / "environment.yml").write_text("dependencies: [python]\n")
    with pytest.raises(RequestError, match=r"no dependencies") as caught:
        read_import(tmp_path / "setup.cfg")
    assert caught.value.hint == f"import a file beside it: --from {tmp_path}/environment.yml"
