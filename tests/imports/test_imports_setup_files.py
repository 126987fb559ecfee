"""setup.py and setup.cfg → the dependencies of a project, read as text."""

from __future__ import annotations

import pytest

from reprobuild.errors import RequestError
from reprobuild.imports.recognize import read_import
from reprobuild.imports.request_keys import request_table
from support.fixtures import fixtures_of
from support.team_files import Write, packages

globals().update(fixtures_of("support.team_files"))


SETUP = """
from setuptools import setup
REQUIRED = [
    "numpy<2",  # why
    "tqdm",
]
EXTRAS = {"plot": ["matplotlib"]}
setup(name="ours", python_requires=">=3.12", install_requires=REQUIRED, extras_require=EXTRAS)
"""


def test_a_setup_py_is_read_and_not_run(write: Write) -> None:
    file = write("setup.py", "import sys; sys.exit('was run')\n" + SETUP)
    imported = read_import(file, extras=["Plot"])
    table = request_table(imported, {"cuda": "cpu"})
    assert (table["name"], table["python"]) == ("ours", "3.13")
    assert table["packages"] == ["numpy<2", "tqdm", "matplotlib"]


@pytest.mark.parametrize(
    "change",
    [
        "REQUIRED.append('more')",
        "REQUIRED += ['more']",
        "REQUIRED = open('x').read().split()",
        "REQUIRED[0] = 'more'",
        "def later():\n    global REQUIRED\n    REQUIRED = ['more']",
    ],
)
def test_requirements_that_a_setup_py_changes_are_not_taken(write: Write, change: str) -> None:
    call = "setup(" + SETUP.partition("setup(")[2]
    file = write("setup.py", SETUP.replace(call, f"{change}\n{call}"))
    assert packages(file, extras=["plot"]) == ["ours[plot] @ .."]


@pytest.mark.parametrize(
    "text",
    ["setup(install_requires=read('requirements.txt'))", "setup()", "setup(**kwargs)", "setup(name=f())"],
)
def test_a_project_whose_build_alone_tells_what_it_requires(write: Write, text: str) -> None:
    assert packages(write("libs/setup.py", text)) == ["libs @ ../libs"]


def test_a_setup_cfg_with_files_and_extras(write: Write) -> None:
    write("needs.txt", "tqdm\n")
    file = write(
        "setup.cfg",
        "[metadata]\nname = ours\n[options]\ninstall_requires = file: needs.txt\npython_requires = >=3.9\n"
        "[options.extras_require]\nplot =\n    matplotlib\n",
    )
    assert packages(file, extras=["plot"]) == ["matplotlib", "tqdm"]
    write("setup.py", "from setuptools import setup\nsetup()")
    assert packages(file.with_name("setup.py")) == ["tqdm"]


def test_a_pyproject_of_tools_alone_leads_to_setup_py(write: Write) -> None:
    write("setup.py", SETUP)
    assert packages(write("pyproject.toml", "[build-system]\nrequires = ['setuptools']\n")) == [
        "numpy<2",
        "tqdm",
    ]


def test_dynamic_dependencies_that_setup_py_names(write: Write) -> None:
    write("setup.py", SETUP)
    file = write("pyproject.toml", "[project]\nname = 'ours'\ndynamic = ['dependencies']\n")
    assert packages(file) == ["numpy<2", "tqdm"]


def test_a_project_s_own_extras_among_its_extras(write: Write) -> None:
    file = write(
        "pyproject.toml",
        "[project]\nname = 'ours'\n[project.optional-dependencies]\n"
        "all = ['ours[plot]', 'tqdm']\nplot = ['matplotlib']\n",
    )
    assert packages(file, extras=["all"]) == ["tqdm", "matplotlib"]


@pytest.mark.parametrize(
    ("beside", "hint"),
    [
        (("setup.py", "requirements.txt"), "import a file beside it: --from {}/setup.py"),
        (("requirements.txt",), "import a file beside it: --from {}/requirements.txt"),
        ((), "import a requirements file"),
    ],
)
def test_a_setup_cfg_of_tools_alone_names_the_file_that_has_more(
    write: Write, beside: tuple[str, ...], hint: str
) -> None:
    file = write("setup.cfg", "[isort]\nline_length = 100\n")
    for name in beside:
        write(name, "six")
    with pytest.raises(RequestError, match="no dependencies") as caught:
        read_import(file)
    assert caught.value.hint == hint.format(file.parent)


@pytest.mark.parametrize("name", ["setup.cfg", "setup.py"])
def test_extras_of_the_project_itself_are_no_package_of_an_index(write: Write, name: str) -> None:
    if name == "setup.cfg":
        text = (
            "[metadata]\nname = ours\n[options]\ninstall_requires =\n    a\n    Ours[base]\n"
            "[options.extras_require]\nbase = b\nwin = c\nlin = d; python_version > '3'\n    ours[all]\n"
            "all =\n    ours[win]; sys_platform == 'win32'\n    ours[lin]; sys_platform == 'linux'\n"
        )
    else:
        text = (
            "from setuptools import setup\nsetup(name='ours', install_requires=['a', 'Ours[base]'], "
            "extras_require={'base': ['b'], 'win': ['c'], 'lin': [\"d; python_version > '3'\", 'ours[all]'], "
            "'all': [\"ours[win]; sys_platform == 'win32'\", \"ours[lin]; sys_platform == 'linux'\"]})\n"
        )
    found = read_import(write(name, text), extras=["all"])
    assert request_table(found, {"cuda": "cpu"})["packages"] == ["a", "b", "d"]


def test_extras_that_include_each_other_without_end(write: Write) -> None:
    links = "".join(f"e{n} = ours[e{n + 1}]\n" for n in range(2000))
    text = f"[metadata]\nname = ours\n[options]\n[options.extras_require]\n{links}"
    with pytest.raises(RequestError, match="its extras are nested too deeply"):
        read_import(write("setup.cfg", text), extras=["e0"])
