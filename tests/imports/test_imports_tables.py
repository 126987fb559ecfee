"""The tables of Poetry and PDM: which index a package is from, what is overridden, and what has no say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from reprobuild.imports import common
from reprobuild.imports.poetry import specifier
from reprobuild.imports.reader import Imported, read_import, request_table

PYTORCH = "https://packages.pytorch.org/whl"
Read = Callable[..., Imported]


@pytest.fixture(autouse=True)
def _amd64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "architecture", lambda: "amd64")


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def reader(text: str, *extras: str, groups: tuple[str, ...] = ()) -> Imported:
        (tmp_path / "pyproject.toml").write_text(text)
        return read_import(tmp_path / "pyproject.toml", extras=extras, groups=groups)

    return reader


SOURCES = "".join(
    f'[[tool.poetry.source]]\nname = "{name}"\nurl = "{PYTORCH}/{name}"\npriority = "explicit"\n'
    for name in ("cpu", "cu118")
)
EXCLUSIVE = (
    '[project]\nname = "ours"\nrequires-python = "==3.11.*"\ndependencies = ["six"]\n'
    '[project.optional-dependencies]\ncpu = ["torch"]\ncuda = ["torch"]\n\n'
    "[tool.poetry.dependencies]\ntorch = [\n"
    "  { markers = \"extra == 'cpu' and extra != 'cuda'\", source = \"cpu\" },\n"
    "  { markers = \"extra == 'cuda' and extra != 'cpu'\", source = \"cu118\" },\n]\n" + SOURCES
)


def test_exclusive_extras_of_poetry_choose_the_source(read: Read) -> None:
    found = {extra: read(EXCLUSIVE, *extra.split()) for extra in ("cpu", "cuda", "", "cpu cuda")}
    assert {extra: each.cuda for extra, each in found.items()} == {
        "cpu": "cpu", "cuda": "11.8", "": None, "cpu cuda": None,
    }  # fmt: skip
    assert found["cuda"].applied == (f"{found['cuda'].origin}: torch is from the source cu118",)


def test_a_group_of_poetrys_chooses_a_source_and_a_platform_is_a_marker(read: Read) -> None:
    text = (
        '[tool.poetry]\nname = "ours"\nfrobnicate = 1\n[tool.poetry.dependencies]\npython = "3.11.*"\n'
        'six = { version = "=1.16.0", platform = "linux" }\nmac = { version = "*", platform = "darwin" }\n'
        'idna = { version = "^3", allow-prereleases = true }\n'
        '[tool.poetry.group.gpu.dependencies]\ntorch = { version = "*", source = "cu118" }\n' + SOURCES
    )
    found = read(text, groups=("gpu",))
    assert found.cuda == "11.8"
    table = request_table(found, {})
    assert table["packages"] == ["six==1.16.0", "idna<4,>=3"]
    assert [line.partition(": ")[2].partition(" is ")[0] for line in found.ignored] == [
        *("tool.poetry.frobnicate", "tool.poetry: idna.allow-prereleases"),
    ]
    assert read(text).cuda is None


def test_poetrys_table_says_where_a_dependency_of_the_project_is_from(read: Read) -> None:
    found = read(
        '[project]\nname = "ours"\ndependencies = ["six>=1"]\n'
        '[tool.poetry.dependencies]\nsix = { git = "https://git.example/six.git", rev = "v1" }\n'
    )
    assert [str(each) for each in found.requirements] == ["six @ git+https://git.example/six.git@v1"]


@pytest.mark.parametrize("text", ["=3.7", "= 3.7", "==3.7", "3.7"])
def test_one_equals_sign_of_poetrys_is_a_pin(text: str) -> None:
    assert specifier(text, "here") == "==3.7"


def test_pdms_overrides_exclusions_and_sources_count(read: Read) -> None:
    found = read(
        '[project]\nname = "ours"\ndependencies = ["urllib3<2", "torch"]\n'
        f'[[tool.pdm.source]]\nname = "torch"\nurl = "{PYTORCH}/cu118"\ninclude_packages = ["torch"]\n'
        '[tool.pdm.resolution]\nexcludes = ["pytz"]\nallow-prereleases = true\n'
        '[tool.pdm.resolution.overrides]\nurllib3 = "2.2.1"\nidna = ">=3"\n'
        '[tool.pixi.dependencies]\ngcc = "*"\n'
    )
    table = request_table(found, {})
    assert (table["cuda"], table["index"], table["packages"]) == ("11.8", "pytorch", ["urllib3==2.2.1"])
    assert table["overrides"] == ["urllib3==2.2.1", "idna>=3", 'pytz; python_version < "0"']
    assert [line.partition(": ")[2].partition(" is ")[0] for line in found.ignored] == [
        *("tool.pdm.source[0].include_packages", "tool.pdm.resolution.allow-prereleases", "tool.pixi"),
    ]


@pytest.mark.parametrize(("index", "cuda"), [("cpu", "cpu"), ("cu118", "11.8"), (None, None)])
def test_the_index_that_a_pipfile_lock_names_for_torch_counts(
    tmp_path: Path, index: str | None, cuda: str | None
) -> None:
    sources = [{"name": name, "url": f"{PYTORCH}/{name}"} for name in ("cpu", "cu118")]
    torch = {"version": "==2.4.1", **({"index": index} if index else {}), "frob": 1}
    default = {"name": "own", "url": "https://pypi." + "org/simple"}
    lock = {"_meta": {"sources": [default, *sources]}, "default": {"torch": torch}}
    (tmp_path / "Pipfile.lock").write_text(json.dumps(lock))
    found = read_import(tmp_path / "Pipfile.lock")
    assert found.cuda == cuda
    assert [line.partition(": ")[2] for line in found.ignored] == [
        "default.torch.frob is ignored: reprobuild does not use it"
    ]
