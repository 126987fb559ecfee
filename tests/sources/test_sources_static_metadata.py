"""What source archives say without being built, and what only a build can tell."""

from __future__ import annotations

import pytest

from reprobuild.errors import BuildError
from reprobuild.sources.source_archive import Told
from reprobuild.sources.static_metadata import requirements_of, static_metadata

HEAD = "Metadata-Version: 2.2\nName: A_Tool\nVersion: 1.0\n"
PROJECT = '[project]\nname = "A.Tool"\nversion = "1.0"\n'


def of(*, info: str | None = None, project: str | None = None) -> bytes | None:
    said = Told(
        pkg_info=None if info is None else info.encode(),
        pyproject=None if project is None else project.encode(),
    )
    return static_metadata(said, "a-tool", "1.0")


def test_pkg_info_from_2_2_on() -> None:
    info = HEAD + "Requires-Python: >=3.9\nRequires-Dist: x (>=1)\nProvides-Extra: Big\n"
    info += "Requires-Dist: y ; extra == 'big'\nDynamic: License-File\n\nRequires-Dist: none\n"
    assert of(info=info) == (
        b"Metadata-Version: 2.2\nName: a-tool\nVersion: 1.0\nRequires-Python: >=3.9\n"
        b'Requires-Dist: x>=1\nRequires-Dist: y; extra == "big"\nProvides-Extra: big\n'
    )


@pytest.mark.parametrize(
    "info",
    [
        HEAD.replace("2.2", "2.1"),
        HEAD.replace("2.2", "x"),
        HEAD + "Dynamic: Requires-Dist\n",
        HEAD + "Dynamic: version\n",
        HEAD + "Requires-Dist: not a requirement\n",
        HEAD + "Requires-Python: sometimes\n",
        "",
    ],
)
def test_what_is_not_static(info: str) -> None:
    assert of(info=info) is None


def test_a_project_table() -> None:
    project = PROJECT + 'dependencies = ["x>=1; python_version < \'3.13\'"]\nrequires-python = ">=3.9"\n'
    project += '[project.optional-dependencies]\nbig = ["y", "z @ https://x.example/z ; os_name == \'nt\'"]\n'
    found = of(project=project, info=HEAD.replace("2.2", "2.1"))
    assert found is not None
    python, required = requirements_of(found)
    assert python == ">=3.9"
    assert sorted(text.replace("z@", "z @") for text in required) == [
        'x>=1; python_version < "3.13"',
        'y; extra == "big"',
        'z @ https://x.example/z ; os_name == "nt" and extra == "big"',
    ]
    assert b"Provides-Extra: big\n" in found


@pytest.mark.parametrize(
    "project",
    [
        PROJECT,
        PROJECT + 'dynamic = ["dependencies"]',
        PROJECT + 'dependencies = []\ndynamic = ["optional-dependencies"]',
        PROJECT + "dependencies = [1]",
        PROJECT + 'dependencies = ["not a requirement"]',
        PROJECT + "dependencies = []\n[project.optional-dependencies]\nbig = 1",
        "project = 1",
        "[",
    ],
)
def test_a_table_that_leaves_something_to_the_build(project: str) -> None:
    assert of(project=project) is None


def test_another_package_is_refused() -> None:
    with pytest.raises(BuildError, match=r"a-tool 1\.0: the PKG-INFO .* is that of A_Tool 1\.1"):
        of(info=HEAD.replace("1.0", "1.1"))
    with pytest.raises(BuildError, match=r"the pyproject\.toml .* is that of other 1\.0"):
        of(project=PROJECT.replace("A.Tool", "other") + "dependencies = []")
    assert of(project=PROJECT.replace("1.0", "1.0.0") + "dependencies = []") is not None


def test_lines_that_a_name_would_add_are_none() -> None:
    project = '[project]\nname = "a-tool"\nversion = "1.0"\ndependencies = []\n'
    project += '[project.optional-dependencies]\n"x\\nRequires-Dist: evil" = []\n'
    found = of(project=project)
    assert found is not None
    assert requirements_of(found) == ("", frozenset())
