"""Locks of Poetry, PDM and Pipenv against the project file beside them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from reprobuild.errors import RequestError
from reprobuild.imports.recognize import read_import

ASKED = {
    "caret": ('"^3.6"', "3.7", True),
    "exact": ('"3.6"', "3.7", False),
    "tilde": ('"~3.6"', "3.7", False),
    "any": ('"*"', "4.0rc1", True),
    "a pre-release": ('">=3"', "4.0rc1", True),
    "local": ('"3.7"', "3.7+cu118", True),
    "two": ("[{version = '3.6', markers = 'sys_platform == \"win32\"'}, {version = '3.7'}]", "3.7", True),
    "python": ('{version = "3.6", python = "<3.11"}', "3.7", True),
    "source": ('{git = "https://x.example/idna.git"}', "3.7", False),
}
POETRY = (
    '[[package]]\nname = "idna"\nversion = "3.7"\noptional = false\nGROUPS\nfiles = []\n'
    '[metadata]\nlock-version = "2.1"\npython-versions = ">=3.11,<4"\n'
)


@pytest.mark.parametrize("groups", ['groups = ["main"]', ""], ids=["with groups", "older"])
@pytest.mark.parametrize("asked", ASKED)
def test_a_poetry_lock_has_what_its_project_asks_for(tmp_path: Path, asked: str, groups: str) -> None:
    entry, version, fits = ASKED[asked]
    (tmp_path / "pyproject.toml").write_text(
        f'[tool.poetry.dependencies]\npython = "^3.11"\nIdna = {entry}\n'
        'other = {version = "9", optional = true}\n'
    )
    lock = tmp_path / "poetry.lock"
    other = '[[package]]\nname = "six"\nversion = "1"\noptional = false\ngroups = ["main"]\nfiles = []\n'
    lock.write_text(other * bool(groups) + POETRY.replace("3.7", version, 1).replace("GROUPS", groups))
    if fits and (asked != "python" or groups):
        assert read_import(lock).requirements
        return
    with pytest.raises(RequestError) as caught:
        read_import(lock)
    if asked != "python":  # an older lock then has nothing for this Python
        assert re.search(
            r"out of date: .*pyproject\.toml asks for Idna.*, and locked is idna 3\.7", str(caught.value)
        )
        assert caught.value.hint == "update the lock with the tool that made it: `poetry lock`"


@pytest.mark.parametrize(
    ("project", "says"),
    [
        (
            "[tool.poetry.dependencies]\npython = '^3.13'\nidna = '*'\n",
            r"is for Python >=3.13,<4, .* <4,>=3.11",
        ),
        ("[tool.poetry.dependencies]\nidna = '*'\nrich = '*'\n", r"lacks rich, .*pyproject"),
        ("[project]\ndependencies = ['idna>3.7']\n", r"dependencies\[0\] asks for idna>3.7, and locked is"),
    ],
)
def test_a_poetry_lock_of_another_project_is_refused(tmp_path: Path, project: str, says: str) -> None:
    (tmp_path / "pyproject.toml").write_text(project)
    (tmp_path / "poetry.lock").write_text(POETRY.replace("GROUPS", 'groups = ["main"]'))
    with pytest.raises(RequestError, match=says):
        read_import(tmp_path / "poetry.lock")


def test_a_pdm_lock_has_what_its_project_asks_for(tmp_path: Path) -> None:
    lock, project = tmp_path / "pdm.lock", tmp_path / "pyproject.toml"
    lock.write_text(
        '[metadata]\n[[package]]\nname = "idna"\nversion = "3.7"\ngroups = ["default", "dev"]\nfiles = []\n'
    )
    text = "[project]\nname = 'x'\ndependencies = ['idna==3.7']\n[dependency-groups]\ndev = ['idna<3.7']\n"
    project.write_text(text)
    assert read_import(lock).requirements
    with pytest.raises(RequestError, match=r"asks for idna<3\.7, and locked is idna 3\.7") as caught:
        read_import(lock, groups=["dev"])
    assert caught.value.hint == "update the lock with the tool that made it: `pdm lock`"
    project.write_text(f"{text}[tool.pdm.resolution.overrides]\nidna = '3.7'\n")
    assert read_import(lock, groups=["dev"]).requirements


REPO = "git+https://x.example/r"
FOR_POETRY = """\
[package.source]
type = "git"
url = "https://x.example/r.git"
reference = "REF"
resolved_reference = "c1"
subdirectory = "s"
"""
FOR_PDM = 'git = "https://x.example/r.git"\nref = "REF"\nrevision = "c1"\nsubdirectory = "s"\n'


@pytest.mark.parametrize("name", ["poetry.lock", "pdm.lock"])
@pytest.mark.parametrize(
    ("asked", "ref", "fits"),
    [
        (f"{REPO}@v1#subdirectory=s", "v1", True),
        (f"{REPO}.git#subdirectory=./s/", "HEAD", True),
        (f"{REPO}@v2#subdirectory=s", "v1", False),
        (f"{REPO}#subdirectory=s", "v1", False),
        (f"{REPO}@v1", "v1", False),
        ("git+https://x.example/fork@v1#subdirectory=s", "v1", False),
        ("https://x.example/r.zip", "v1", False),
    ],
)
def test_another_address_is_refused(tmp_path: Path, name: str, asked: str, ref: str, *, fits: bool) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[project]\nname = 'x'\ndependencies = ['idna @ {asked}']\n")
    text = POETRY.replace("GROUPS", 'groups = ["main", "default"]')
    source = (FOR_POETRY if name == "poetry.lock" else FOR_PDM).replace("REF", ref)
    lock = tmp_path / name
    lock.write_text(text.replace("[metadata]", f"{source}[metadata]"))
    if fits:
        assert read_import(lock).ignored == ()
        return
    says = rf"asks for idna @ {re.escape(asked)}, and locked is idna @ .*r\.git@c1#subdirectory=s \({ref}\)"
    with pytest.raises(RequestError, match=says):
        read_import(lock)


def test_another_folder_is_refused(tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "pyproject.toml").write_text("[project]\nname = 'idna'\nversion = '3.7'\n")
    source = '[package.source]\ntype = "directory"\nurl = "a"\n'
    text = POETRY.replace("GROUPS", 'groups = ["main"]').replace("[metadata]", f"{source}[metadata]")
    (tmp_path / "poetry.lock").write_text(text)
    project.write_text('[tool.poetry.dependencies]\nidna = {path = "./a/"}\n')
    assert read_import(tmp_path / "poetry.lock").requirements
    project.write_text('[tool.poetry.dependencies]\nidna = {path = "b"}\n')
    with pytest.raises(RequestError, match=r"asks for idna @ file:.*/b, and locked is idna @ file:.*/a$"):
        read_import(tmp_path / "poetry.lock")


def test_an_address_that_another_group_of_the_project_names_is_said(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.poetry.dependencies]\nidna = "^3"\n'
        '[tool.poetry.group.dev.dependencies]\nidna = {git = "https://x.example/idna"}\n'
    )
    source = '[package.source]\ntype = "git"\nurl = "https://x.example/idna"\nresolved_reference = "c1"\n'
    text = POETRY.replace("GROUPS", 'groups = ["main", "dev"]').replace("[metadata]", f"{source}[metadata]")
    (tmp_path / "poetry.lock").write_text(text)
    (line,) = read_import(tmp_path / "poetry.lock").ignored
    assert re.search(
        r"poetry\.lock: locked is idna @ git\+https.*c1; .*pyproject\.toml asks for idna<4,>=3$", line
    )
    assert read_import(tmp_path / "poetry.lock", groups=["dev"]).requirements


OLD = "[tool.poetry.dependencies]\npython = '^3.11'\n"
NEW = "[project]\nrequires-python = '>=3.11'\ndependencies = [DEPENDENCIES]\n"
GROUP = "[dependency-groups]\ndev = ['six']\n"
# The hashes are what the tools compute: Poetry 2.5 and PDM 2.29; the last one as in locks before PDM 2.17.
PLAIN = NEW.replace("DEPENDENCIES", "'idna'")
HASHED = {
    "f88abe17a39a2c5c5bdc7d249a191aefcb6194208bcfd9873331d94ef2fc8768": ("poetry.lock", f"{OLD}idna = '*'\n"),
    "99fde81a1951405475c9a11266ce5da4fb20bb602f5186c5ea65f71061012b43": ("poetry.lock", PLAIN),
    "02d2c56e4569f197f259d798cf3056d21c91f262a4332f15971d986b13d5d786": ("poetry.lock", PLAIN + GROUP),
    "e6ea3d233ff30cee13083c37babbd798fca615228bb94ed5e5351469f6868aaa": ("pdm.lock", PLAIN + GROUP),
    "5eb5f29d69a9438fde3580390266c504e57c406d02629e711f5a58516bd9344d": ("pdm.lock", PLAIN + GROUP),
}


@pytest.mark.parametrize("own", HASHED)
def test_what_is_left_over_in_the_lock_of_a_changed_project_is_refused(tmp_path: Path, own: str) -> None:
    name, project = HASHED[own]
    lock = tmp_path / name
    lock.write_text(
        "".join(
            f'[[package]]\nname = "{each}"\nversion = "3.7"\noptional = false\ngroups = ["main", "default"]\n'
            for each in ("idna", "six")
        )
        + f'[metadata]\npython-versions = ">=3.11"\ncontent-hash = "{own}"\ncontent_hash = "sha256:{own}"\n'
    )
    (tmp_path / "pyproject.toml").write_text(f"{project}\n[tool.other]\nx = 1\n")
    assert read_import(lock).ignored == ()
    (tmp_path / "pyproject.toml").write_text(
        project.replace("idna", "idna>=3" if "[project]" in project else "Idna")
    )
    with pytest.raises(RequestError, match=r"pins six 3\.7, which the project no longer asks for"):
        read_import(lock)
    lock.write_text(lock.read_text().replace('"six"', '"idna"', 1))
    (line,) = read_import(lock).ignored
    assert line.endswith(
        "pyproject.toml has changed since: the versions fit what it asks for, the rest is unknown"
    )


@pytest.mark.parametrize("name", ["poetry.lock", "pdm.lock"])
def test_an_extra_that_the_lock_was_not_made_with_is_refused(tmp_path: Path, name: str) -> None:
    entry = '[[package]]\nname = "{}"\nversion = "2"\ngroups = ["main", "default"]\n{}'
    lists = '[package.extras]\nsocks = ["PySocks (>=1.5.6,!=1.5.7)", "wmi ; sys_platform == \'win32\'"]\n'
    metadata = '[metadata]\npython-versions = ">=3.11"\ncontent-hash = "0"\ncontent_hash = "sha256:0"\n'
    lock = tmp_path / name
    project = NEW.replace("DEPENDENCIES", "'requests[socks]', 'absent[x] ; sys_platform == \"win32\"'")
    (tmp_path / "pyproject.toml").write_text(project)
    poetry = name == "poetry.lock"
    lock.write_text(entry.format("requests", lists if poetry else "") + metadata)
    what = "lacks PySocks" if poetry else "was made without it"
    with pytest.raises(RequestError, match=rf"asks for requests\[socks\], and the lock {what}"):
        read_import(lock)
    with_it = 'dependencies = {PySocks = {version = "*", optional = true}}\n' + lists
    with_it = with_it if poetry else 'extras = ["socks"]\ndependencies = ["PySocks"]\n'
    lock.write_text(entry.format("requests", with_it) + entry.format("pysocks", "") + metadata)
    assert len(read_import(lock).ignored) == 1


def test_poetrys_own_table_may_allow_fewer_pythons(tmp_path: Path) -> None:
    (tmp_path / "poetry.lock").write_text(POETRY.replace("GROUPS", 'groups = ["main"]'))
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nrequires-python = ">=3.8"\ndependencies = ["idna"]\n'
        '[tool.poetry.dependencies]\npython = ">=3.11,<4"\n'
    )
    assert read_import(tmp_path / "poetry.lock").requirements


HASH = "effc182d782a89af9f68725261e7b46693552c77747aba1a98043ffc8bc544a5"
PIPFILE = """
[[source]]
name = "pypi"
url = "https://x.example/simple"
[packages]
Idna = "==3.7"
six = {version = "~=1.16", markers = "sys_platform == 'linux'", index = "pypi"}
tomli = {version = "*", python_version = "< '3.8'"}
repo = {git = "https://x.example/repo.git", ref = "main"}
flask = "1.1.2"
[dev-packages]
pytest = ">=8"
[requires]
python_version = "3.11"
"""


def test_a_pipfile_lock_is_compared_with_its_pipfile(tmp_path: Path) -> None:
    pipfile, lock = tmp_path / "Pipfile", tmp_path / "Pipfile.lock"
    content = {
        "_meta": {"hash": {"sha256": HASH}, "requires": {"python_version": "3.11"}, "sources": []},
        "default": {
            "idna": {"version": "==3.7"},
            "six": {"version": "==1.17.0", "markers": "sys_platform == 'linux'"},
            "repo": {"git": "https://x.example/repo.git", "ref": "c" * 40},
            "flask": {"version": "==3.0"},
        },
        "develop": {"pytest": {"version": "==8.1"}},
    }
    lock.write_text(json.dumps(content))
    pipfile.write_text(PIPFILE)
    assert read_import(lock, groups=["dev"]).ignored == ()
    for old, new, says in (
        ("==3.7", "==3.6", r"packages\.Idna asks for Idna==3\.6, and locked is idna 3\.7"),
        ("~=1.16", "<1", r"packages\.six asks for six<1, and locked is six 1\.17\.0"),
        ("< '3.8'", "> '3.8'", r"lacks tomli, .*packages\.tomli"),
        (
            "{git",
            "{version = '*', nogit",
            r"packages\.repo asks for repo, and locked is repo @ git\+https://x",
        ),
        (">=8", ">=9", r"dev-packages\.pytest asks for pytest>=9, and locked is pytest 8\.1"),
        (
            "x.example/repo",
            "x.example/fork",
            r"asks for repo @ .*/fork\.git, and locked is repo @ .*/repo\.git$",
        ),
        ('"3.11"', '"3.13"', r"requires\.python_version is 3\.13, and the lock was made for 3\.11"),
    ):
        pipfile.write_text(PIPFILE.replace(old, new))
        with pytest.raises(RequestError, match=says) as caught:
            read_import(lock, groups=["dev"])
        assert caught.value.hint == "update the lock with the tool that made it: `pipenv lock`"
    changed = PIPFILE.replace("==3.7", ">=3.7").replace("https://x.example/r", "git@x.example:r")
    pipfile.write_text(changed)
    (line,) = read_import(lock).ignored
    assert line.endswith("Pipfile has changed since: the versions fit what it asks for, the rest is unknown")
    pipfile.unlink()
    assert read_import(lock).ignored == ()


@pytest.mark.parametrize("name", ["poetry.lock", "pdm.lock"])
def test_odd_groups_and_extras_do_not_end_in_a_traceback(tmp_path: Path, name: str) -> None:
    deep = "(" * 2000 + "python_version > '3'" + ")" * 2000
    (tmp_path / name).write_text(
        '[[package]]\nname = "idna"\nversion = "3.7"\ngroups = ["main", "default"]\n'
        + (f'[package.extras]\na = ["x ; {deep}"]\n' if name == "poetry.lock" else "")
        + '[metadata]\npython-versions = ">=3.11"\ncontent-hash = "0"\ncontent_hash = "sha256:0"\n'
    )
    (tmp_path / "pyproject.toml").write_text(
        "[project]\nname = 'x'\ndependencies = ['idna']\n[dependency-groups]\nodd = 3\nother = 1979-05-27\n"
        "[tool.pdm.dev-dependencies]\nodd = 'x'\n"
    )
    (line,) = read_import(tmp_path / name).ignored
    assert "has changed since" in line
