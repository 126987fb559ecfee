"""A uv project: where its packages come from by extra, group and marker; every other key is used or named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reprobuild.errors import RequestError
from reprobuild.imports.recognize import Imported, read_import
from reprobuild.imports.request_keys import lines_on_flags, request_table
from reprobuild.request.model import Request
from support.fixtures import fixtures_of
from support.team_files import PYTORCH

globals().update(fixtures_of("support.team_files"))

Read = Callable[..., Imported]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def reader(text: str, *extras: str, groups: tuple[str, ...] = ()) -> Imported:
        file = tmp_path / "pyproject.toml"
        file.write_text('[project]\nname = "ours"\nversion = "1"\nrequires-python = "==3.11.*"\n' + text)
        return read_import(file, extras=extras, groups=groups)

    return reader


INDEXES = "".join(
    f'[[tool.uv.index]]\nname = "{name}"\nurl = "https://packages.{PYTORCH}/whl/{name}"\nexplicit = true\n'
    for name in ("cpu", "cu130")
)
LAYOUT = (
    'dependencies = ["six"]\n'
    '[project.optional-dependencies]\ncpu = ["torch>=2.9"]\ncu130 = ["torch>=2.9"]\n'
    '[dependency-groups]\ngpu = ["torch"]\ndev = [{include-group = "gpu"}]\n' + INDEXES
)


@pytest.mark.parametrize("order", [("cpu", "cu130"), ("cu130", "cpu")])
def test_the_source_of_the_extra_that_is_asked_for_counts(read: Read, order: tuple[str, ...]) -> None:
    entries = ", ".join(f'{{ index = "{name}", extra = "{name}" }}' for name in order)
    text = LAYOUT + f"[tool.uv.sources]\ntorch = [{entries}]\n"
    assert (read(text, "cpu").cuda, read(text, "cu130").cuda) == ("cpu", "13.0")
    assert read(text, "cu130").applied[0] == (
        f"{read(text).origin}: extra cu130: torch is asked for from the index cu130"
    )
    # Neither is for the project itself, nor for a group.
    for plain in (read(text), read(text, groups=("gpu",))):
        assert (plain.index, plain.cuda, len(plain.applied)) == (None, None, 1)
    with pytest.raises(RequestError, match="torch is asked for from two indexes"):
        read(text, "cpu", "cu130")
    with pytest.raises(RequestError, match="--extra cpu and --extra cu130 exclude each other"):
        read(text + '[tool.uv]\nconflicts = [[{ extra = "cpu" }, { extra = "cu130" }]]\n', "cpu", "cu130")


def test_the_source_of_a_group_is_for_what_the_group_states(read: Read) -> None:
    text = LAYOUT + '[tool.uv.sources]\ntorch = { index = "cu130", group = "gpu" }\n'
    assert read(text, groups=("gpu",)).cuda == "13.0"
    assert read(text, groups=("dev",)).cuda is None  # as uv has it
    assert read(text, "cpu").cuda is None


def test_an_index_of_torch_goes_before_one_for_all_packages(read: Read) -> None:
    text = LAYOUT.replace("explicit = true", "explicit = false", 1)
    text += '[tool.uv.sources]\ntorch = { index = "cu130" }\n'
    assert read(text, "cpu").cuda == "13.0"


def test_a_group_may_require_another_python(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "a"\nrequires-python = ">=3.10"\ndependencies = ["idna"]\n[dependency-groups]\n'
        'dev = [{include-group = "Only_New"}]\nonly-new = ["six>=1 ; python_version >= \'3.12\'"]\n'
        'docs = ["six"]\n'
        '[tool.uv.dependency-groups]\nonly-new = {requires-python = ">=3.12"}\n'
    )
    for group, python, packages in (("dev", "3.13", ["idna", "six>=1"]), ("docs", "3.11", ["idna", "six"])):
        found = read_import(tmp_path / "pyproject.toml", groups=[group])
        table = request_table(found, {"cuda": "cpu"})
        assert (table["python"], table["packages"], found.ignored) == (python, packages, ())


def test_a_marker_is_for_the_python_that_is_asked_for(read: Read) -> None:
    text = LAYOUT + (
        '[tool.uv.sources]\ntorch = [{ index = "cpu", marker = "python_version < \'3.11\'" }, '
        '{ index = "cu130", marker = "python_version >= \'3.11\'" }]\n'
    )
    assert read(text, "cpu").cuda == "13.0"


@pytest.mark.parametrize(
    ("extra", "flag", "line"),
    [
        ("cu130", "cpu", "names PyTorch's index for CUDA 13.0; with --cuda cpu the one for the CPU is asked"),
        ("cpu", "13.0", "names PyTorch's index for the CPU; with --cuda 13.0 the one for CUDA 13.0 is asked"),
        ("cu130", "13.0", ""),
    ],
)
def test_another_cuda_than_that_of_the_index_of_an_extra_is_told(
    read: Read, extra: str, flag: str, line: str
) -> None:
    found = read(
        f"{LAYOUT}[tool.uv.sources]\n"
        'torch = [{ index = "cpu", extra = "cpu" }, { index = "cu130", extra = "cu130" }]\n',
        extra,
    )
    request = Request.from_dict(request_table(found, {"cuda": flag}), "")
    assert request.cuda == flag
    assert [*lines_on_flags(found, {"cuda": flag}, request)] == ([f"{found.origin}: {line}"] if line else [])


def test_constraints_overrides_and_exclusions_become_keys_of_the_request(read: Read) -> None:
    found = read(
        'dependencies = ["numpy<2", "torch", "pandas"]\n[tool.uv]\n'
        'constraint-dependencies = ["idna<3.5", "six==1 ; sys_platform == \'win32\'", "torch<2.9"]\n'
        'override-dependencies = ["numpy==2.2.6", "pywin32 ; sys_platform == \'win32\'"]\n'
        'exclude-dependencies = ["pytz"]\n'
    )
    table = request_table(found, {"cuda": "cpu"})
    assert table["packages"] == ["pandas", "numpy==2.2.6"]
    assert table["torch"] == "<2.9"
    assert table["constraints"] == ["idna<3.5"]
    gone = '; python_version < "0"'
    assert table["overrides"] == ["numpy==2.2.6", f"pywin32{gone}", f"pytz{gone}"]
    assert [line.partition("tool.uv: ")[2] for line in found.applied] == [
        *("constraint idna<3.5", "constraint torch<2.9", "override numpy==2.2.6"),
        *("pywin32 is left out", "pytz is left out"),
    ]


@pytest.mark.parametrize("rule", ["override", "constraint"])
def test_the_address_of_a_source_is_that_of_its_override_too(read: Read, rule: str, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/pyproject.toml").write_text('[project]\nname = "theirs"\n')
    more = '\n[tool.uv.sources]\ntheirs = { path = "theirs" }\n'
    text = "\n[tool.uv]\n%s-dependencies = [\"%s>=1 ; sys_platform == 'linux'\"]\n"
    found = read('dependencies = ["theirs<4"]' + text % (rule, "theirs") + more)
    assert [str(each).partition("/")[0] for each in found.requirements] == ["theirs @ file:"]
    assert (found.overrides, found.constraints) == ((), ())
    for asked, name in (("idna", "theirs"), ("theirs", "theirs[all]")):
        with pytest.raises(RequestError, match="has an address in tool") as caught:
            read(f'dependencies = ["{asked}"]' + text % (rule, name) + more)
        assert f"add {name} to project.dependencies" in caught.value.hint


def test_what_is_excluded_is_so_in_spite_of_an_override(read: Read) -> None:
    rules = '[tool.uv]\noverride-dependencies = ["six==1"]\nexclude-dependencies = ["six"]\n'
    found = read('dependencies = ["idna", "six"]\n' + rules)
    table = request_table(found, {"cuda": "cpu"})
    assert (table["packages"], table["overrides"]) == (["idna"], ['six; python_version < "0"'])


def test_the_source_of_an_overridden_package_is_not_that_of_an_extra(read: Read) -> None:
    text = LAYOUT + '[tool.uv.sources]\ntorch = [{ index = "cpu", extra = "cpu" }]\n[tool.uv]\n'
    assert read(text, "cpu").cuda == "cpu"
    assert read(text + 'override-dependencies = ["torch>=2.9"]\n', "cpu").cuda is None


def test_an_override_of_torch_is_the_key_torch(read: Read) -> None:
    text = 'dependencies = ["torch<2", "pandas"]\n[tool.uv]\noverride-dependencies = ["torch==2.9.0"]\n'
    table = request_table(read(text), {"cuda": "cpu"})
    assert (table["torch"], table["overrides"], table["packages"]) == ("2.9.0", ["torch"], ["pandas"])


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        ("uv", "override-dependencies = [\"torch; sys_platform == 'never'\"]"),
        ("uv", 'exclude-dependencies = ["Torch"]'),
        ("pdm", 'resolution.excludes = ["torch"]'),
    ],
)
def test_torch_cannot_be_left_out(read: Read, table: str, rule: str) -> None:
    found = read(f'dependencies = ["torch==2.9.1"]\n[tool.{table}]\n{rule}\n')
    line = f"{found.origin}: tool.{table}: that torch is left out is ignored: every image has PyTorch"
    assert (found.overrides, found.applied, found.ignored) == ((), (), (line,))
    assert request_table(found, {"cuda": "13.0"})["torch"] == "2.9.1"


def test_what_has_no_say_is_named_and_what_says_the_default_is_not(read: Read) -> None:
    text = (
        'dependencies = ["six"]\n[tool.uv]\nresolution = "highest"\nprerelease = "allow"\nmanaged = true\n'
        'fork-strategy = "fewest"\nno-binary-package = ["lxml"]\ndefault-groups = []\nfrobnicate = 1\n'
        'exclude-newer = "2024-09-15T00:00:00Z"\n'
        '[[tool.uv.dependency-metadata]]\nname = "chumpy"\nrequires-dist = []\n'
        f'[[tool.uv.index]]\nurl = "https://packages.{PYTORCH}/whl/cpu"\nexclude-newer = "2024-01-01"\n'
        'authenticate = "never"\nfrobnicate = 2\n'
    )
    found = read(text)
    assert [line.partition("tool.uv.")[2].partition(" is ignored")[0] for line in found.ignored] == [
        *(
            "prerelease",
            "fork-strategy",
            "no-binary-package (lxml)",
            "frobnicate",
            "dependency-metadata (chumpy)",
        ),
        *("index[0].exclude-newer (2024-01-01)", "index[0].frobnicate (2)"),
    ]
    assert str(found.exclude_newer) == "2024-09-14"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("environments = [\"sys_platform == 'win32'\"]", "none is for linux on x86_64 with Python 3.11"),
        ('environments = ["x"]', "environments: "),
        ('constraint-dependencies = "x"', "expected a list of requirements"),
        ("no-sources-package = 3", "tool.uv.no-sources-package: expected a list"),
        ('conflicts = [["a", "b"]]', "expected tables"),
        ('sources = { six = { index = "x", frob = 1 } }', "six.frob: unknown key"),
    ],
)
def test_what_cannot_be_kept_is_refused(read: Read, text: str, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        read(f'dependencies = ["six"]\n[tool.uv]\n{text}\n')


def test_a_member_of_a_workspace_has_the_sources_and_rules_of_its_root(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        INDEXES
        + '[tool.uv]\nconstraint-dependencies = ["idna<3.5"]\n[tool.uv.workspace]\nmembers = ["packages/*"]\n'
        '[tool.uv.sources]\ntorch = { index = "cu130" }\n'
    )
    member = tmp_path / "packages/a/pyproject.toml"
    member.parent.mkdir(parents=True)
    member.write_text(
        '[project]\nname = "a"\ndependencies = ["torch"]\n[tool.uv]\nconstraint-dependencies = ["b"]\n'
    )
    found = read_import(member)
    assert (found.cuda, found.constraints) == ("13.0", ("idna<3.5",))


def test_a_member_of_a_workspace_has_the_python_version_of_its_root(tmp_path: Path) -> None:
    text = '[project]\nname = "a"\nrequires-python = ">=3.10"\n'
    text += 'dependencies = ["six ; python_version < \'3.12\'", "idna"]\n'
    for name in ("member", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pyproject.toml").write_text(text)
    (tmp_path / "pyproject.toml").write_text('[tool.uv.workspace]\nmembers = ["mem*"]\n')
    (tmp_path / ".python-version").write_text("3.12.4\n")
    for name, python, packages in (("member", "3.12", ["idna"]), ("other", "3.11", ["six", "idna"])):
        found = read_import(tmp_path / name / "pyproject.toml")
        table = request_table(found, {"cuda": "cpu"})
        assert (table["python"], table["packages"]) == (python, packages)
    (line,) = read_import(tmp_path / "member/pyproject.toml").ignored
    assert line.startswith(f"{tmp_path}/.python-version: 3.12.4 chooses Python 3.12 alone")
