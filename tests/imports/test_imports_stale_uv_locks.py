"""A uv.lock that is for another project file than the one beside it, and those that are for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reprobuild.errors import RequestError
from reprobuild.imports.recognize import read_import

PROJECT = """
[project]
name = "Own.App"
version = "1"
requires-python = ">=3.11,<3.15"
dependencies = [
    "idna==3.7", "Requests[Socks]>=2 , <3", "tomli; python_version<'3.11'", "six; python_version>='3.11'",
    "torch", "repo", "wheel @ https://x.example/wh%65el-1-py3-none-any.whl#sha256=0", "part", "two",
]
[project.optional-dependencies]
a = ["attrs (>=22.0)"]
b_c = ["own-app[a]", "packaging===24.0"]
[dependency-groups]
Dev = [{include-group = "test"}, "iniconfig"]
test = ["pluggy>1", "own.app[b.c]"]
new = ["late"]
empty = []
[tool.uv]
dev-dependencies = ["sniffio"]
constraint-dependencies = ["certifi<2027.0"]
no-sources-package = ["iniconfig"]
exclude-dependencies = ["colorama"]
override-dependencies = ["urllib3==2.2.*"]
dependency-groups = {new = {requires-python = ">=3.13"}}
index = [{name = "cpu", url = "https://me:x@x.example/cpu/", explicit = true}]
[tool.uv.sources]
Torch = {index = "cpu"}
repo = {git = "https://x.example/repo", tag = "v1", extra = "none"}
colorama = {index = "cpu"}
iniconfig = {git = "https://x.example/iniconfig"}
part = {path = "part"}
two = [
    {git = "https://x.example/two", branch = "main", marker = "sys_platform == 'linux'"},
    {index = "cpu", marker = "sys_platform != 'linux'"},
]
"""

LOCK = """
version = 1
revision = 3
requires-python = ">=3.11, <3.15"
[manifest]
constraints = [{ name = "certifi", specifier = "<2027" }]
overrides = [{ name = "urllib3", specifier = "==2.2.*" }]
excludes = ["colorama"]
[[package]]
name = "idna"
version = "3.7"
source = { registry = "https://x.example/simple" }
wheels = [{ url = "https://x.example/idna-3.7-py3-none-any.whl", hash = "sha256:HASH" }]
[[package]]
name = "own-app"
version = "1"
source = { virtual = "." }
dependencies = [{ name = "idna" }]
[package.metadata]
requires-dist = [
    { name = "attrs", marker = "extra == 'a'", specifier = ">=22.0" },
    { name = "idna", specifier = "==3.7" },
    { name = "own-app", extras = ["a"], marker = "extra == 'b-c'" },
    { name = "packaging", marker = "extra == 'b-c'", specifier = "===24.0" },
    { name = "part", directory = "part" },
    { name = "repo" },
    { name = "requests", extras = ["socks"], specifier = ">=2,<3" },
    { name = "six" },
    { name = "tomli", marker = "python_full_version < '3.11'" },
    { name = "torch", index = "https://x.example/cpu" },
    { name = "two", marker = "sys_platform == 'linux'", git = "https://x.example/two?branch=main" },
    { name = "two", marker = "sys_platform != 'linux'", index = "https://x.example/cpu" },
    { name = "wheel", url = "https://x.example/wheel-1-py3-none-any.whl" },
]
provides-extras = ["a", "b-c"]
[package.metadata.requires-dev]
dev = [
    { name = "iniconfig" }, { name = "own-app", extras = ["b-c"] }, { name = "pluggy", specifier = ">1" },
    { name = "sniffio" },
]
empty = []
new = [{ name = "late", marker = "python_full_version >= '3.13'" }]
test = [{ name = "own-app", extras = ["b-c"] }, { name = "pluggy", specifier = ">1" }]
""".replace("HASH", "0" * 64)


def write(folder: Path, project: str, lock: str = LOCK) -> Path:
    (folder / "pyproject.toml").write_text(project)
    (folder / "uv.lock").write_text(lock)
    return folder / "uv.lock"


def test_a_lock_that_is_up_to_date_is_read(tmp_path: Path) -> None:
    found = read_import(write(tmp_path, PROJECT))
    assert [str(each) for each in found.requirements] == ["idna==3.7"]
    assert not [line for line in found.ignored if "up to date" in line]


CHANGES = {
    "version": ("idna==3.7", "idna==3.6", "project.dependencies asks for idna==3.6", "for idna==3.7"),
    "new": ('"idna==3.7"', '"idna==3.7", "cowsay"', "asks for cowsay", "for a project without it"),
    "gone": ('"idna==3.7",', "", "no longer asks for idna", "for idna==3.7"),
    "extra": ("[Socks]", "", "asks for requests<3,>=2", "for requests[socks]<3,>=2"),
    "marker": ("six; python_version>='3.11'", "six; python_version<'3.11'", "no longer asks for six", "six"),
    "optional": (">=22.0", ">=23", "project.optional-dependencies.a asks for attrs>=23", "attrs>=22.0"),
    "recursive": ('"own-app[a]", ', "", "optional-dependencies.b_c no longer asks for attrs", "attrs"),
    "group": ("pluggy>1", "pluggy>2", "dependency-groups.dev asks for pluggy>2", "pluggy>1"),
    "new group": ('["late"]', '["late>1"]', "dependency-groups.new asks for late>1", "late"),
    "dev": ("sniffio", "sniffio>1", "dependency-groups.dev asks for sniffio>1", "sniffio"),
    "constraint": ("<2027.0", "<2026", "tool.uv.constraint-dependencies asks for certifi<2026", "<2027"),
    "override": ("2.2.*", "2.3.*", "tool.uv.override-dependencies asks for urllib3==2.3.*", "==2.2.*"),
    "exclusion": ('["colorama"]', "[]", "exclude-dependencies no longer asks for colorama", "colorama"),
    "index": ("x.example/cpu/", "x.example/gpu/", "torch from index x.example/gpu", "x.example/cpu"),
    "branch": ('"main"', '"next"', "asks for two from git x.example/two next", "x.example/two main"),
    "repository": (
        "x.example/two",
        "x.example/fork",
        "two from git x.example/fork main",
        "two from git x.example/two",
    ),
    "subfolder": (
        '"main",',
        '"main", subdirectory = "./s/",',
        "two from git x.example/two main s",
        "x.example/two main",
    ),
    "folder": ('path = "part"', 'path = "m/part"', "asks for part from path m/part", "part from path part"),
    "folder by its address": ('"part"', '"part @ file:///part"', "asks for part from path ../", "path part"),
    "source": (', extra = "none"', "", "asks for repo from git x.example/repo v1", "for repo"),
    "url": ("wh%65el-1", "wheel-2", "wheel-2-py3", "wheel-1-py3"),
    "python": (">=3.11,<", ">=3.12,<", "requires-python >=3.12,<3.15", "for >=3.11, <3.15"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_lock_of_what_the_project_no_longer_asks_for_is_refused(tmp_path: Path, change: str) -> None:
    old, new, asked, had = CHANGES[change]
    assert old in PROJECT
    with pytest.raises(RequestError, match=rf"out of date: .*{re.escape(asked)}.*{re.escape(had)}") as caught:
        read_import(write(tmp_path, PROJECT.replace(old, new)))
    assert caught.value.hint == "update the lock with the tool that made it: `uv lock`"


SAME = {
    "the repository": ('//x.example/two"', '//me@x.example/two.git/"'),
    "its address": ('"part"', '"part @ file://FOLDER/part"'),
    "the folder": ('path = "part"', 'path = "../FOLDER/part/"'),
    "its root": ('"part"', '"part @ file:///${PROJECT_ROOT}/part"'),
}


@pytest.mark.parametrize("other", SAME)
def test_an_address_may_be_written_in_another_way(tmp_path: Path, other: str) -> None:
    old, new = SAME[other]
    assert old in PROJECT
    project = PROJECT.replace(
        old, new.replace("../FOLDER", f"../{tmp_path.name}").replace("FOLDER", str(tmp_path)), 1
    )
    assert read_import(write(tmp_path, project)).ignored == ()


LINUX = "\"platform_machine == 'x86_64' and sys_platform == 'linux'\""


@pytest.mark.parametrize(
    ("key", "value", "options"),
    [
        ("resolution", '"lowest"', '[options]\nresolution-mode = "lowest"'),
        ("prerelease", '"allow"', '[options]\nprerelease-mode = "allow"'),
        ("fork-strategy", '"fewest"', '[options]\nfork-strategy = "fewest"'),
        ("exclude-newer", '"2026-01-01"', '[options]\nexclude-newer = "2026-01-02T00:00:00Z"'),
        ("exclude-newer-package", '{a = "2026-01-01"}', '[options.exclude-newer-package]\na = "2026-01-02"'),
        ("environments", f"[{LINUX}]", f"supported-markers = [{LINUX}]"),
        ("environments", LINUX, f"supported-markers = [{LINUX}]"),
        ("required-environments", f"[{LINUX}]", f"required-markers = [{LINUX}]"),
        (
            "conflicts",
            '[[{extra = "A"}, {group = "empty"}]]',
            'conflicts = [[{package = "own-app", group = "empty"}, {package = "own-app", extra = "a"}]]',
        ),
        ("build-constraint-dependencies", '["a<2"]', '[[manifest.build-constraints]]\nname = "a"'),
        ("dependency-metadata", '[{name = "idna"}]', '[[manifest.dependency-metadata]]\nname = "idna"'),
    ],
)
def test_other_options_are_said(tmp_path: Path, key: str, value: str, options: str) -> None:
    project = PROJECT.replace("[tool.uv]", f"[tool.uv]\n{key} = {value}")
    before = "[[package]]" if options.startswith("[") else "[manifest]"
    lock = LOCK.replace(before, f"{options}\n{before}", 1)
    for texts in ((project, LOCK), (PROJECT, lock)):
        (line,) = read_import(write(tmp_path, *texts)).ignored
        assert "uv.lock: may be out of date: " in line
        assert f"pyproject.toml: tool.uv.{key} is not the setting that the lock was made with" in line
    assert read_import(write(tmp_path, project, lock)).ignored == ()


ELSEWHERE = {
    "version": ('version = "1"', 'version = "2"', "its version is 2, and was 1 when the lock was made"),
    "dynamic version": ('version = "1"', 'dynamic = ["version"]', "its version is dynamic, and was 1"),
    "upper bound": (",<3.15", ",<3.20", "requires-python is >=3.11,<3.20, the lock's <3.15,>=3.11"),
    "windows": (
        '"torch",',
        "\"torch; sys_platform != 'win32'\",",
        "dependencies asks for torch in another way",
    ),
    "interpreter": (
        "<'3.11'",
        "<'3.11' or implementation_name=='pypy'",
        "dependencies asks for tomli in another",
    ),
    "no Python": (
        '"part",',
        '"part", "q; python_version < \'3\'",',
        "dependencies asks for q in another way",
    ),
    "empty extra": ("a = [", "none = []\na = [", "project.optional-dependencies.none is new"),
    "empty group": ("empty = []", "none = []", "dependency-groups.empty is no longer there"),
    "override": ('2.2.*"', "2.2.*; sys_platform != 'win32'\"", "override-dependencies asks for urllib3 in"),
}


@pytest.mark.parametrize("change", ELSEWHERE)
def test_what_moves_no_pin_of_an_image_is_said(tmp_path: Path, change: str) -> None:
    old, new, says = ELSEWHERE[change]
    assert old in PROJECT
    found = read_import(write(tmp_path, PROJECT.replace(old, new, 1)))
    assert [str(each) for each in found.requirements] == ["idna==3.7"]
    assert "uv.lock: may be out of date: " in found.ignored[0]
    assert says in found.ignored[0]


def test_new_rules_count_for_packages_of_the_lock_alone(tmp_path: Path) -> None:
    project = PROJECT.replace('"certifi<2027.0"', '"certifi<2027.0", "none<1"')
    project = project.replace('["colorama"]', '["colorama", "none"]').replace('2.2.*"', '2.2.*", "none==1"')
    assert read_import(write(tmp_path, project)).ignored == ()
    with pytest.raises(RequestError, match=r"constraint-dependencies asks for idna<4"):
        read_import(write(tmp_path, project.replace("none<1", "idna<4")))
    with pytest.raises(RequestError, match="constraint-dependencies no longer asks for certifi"):
        read_import(write(tmp_path, project.replace('"certifi<2027.0", ', "")))


def test_the_pythons_of_a_group_count_in_those_that_include_it(tmp_path: Path) -> None:
    keys = '{new = {requires-python = ">=3.13"}, test = {requires-python = ">=3.12"}}'
    project = re.sub(r"dependency-groups = \{.*", f"dependency-groups = {keys}", PROJECT)
    with pytest.raises(RequestError, match=r"dependency-groups\.dev no longer asks for attrs"):
        read_import(write(tmp_path, project))
    lock = LOCK.replace('name = "pluggy",', 'name = "pluggy", marker = "python_full_version >= \'3.12\'",')
    lock = lock.replace(
        'extras = ["b-c"] }', 'extras = ["b-c"], marker = "python_full_version >= \'3.12\'" }'
    )
    assert read_import(write(tmp_path, project, lock)).ignored == ()


def test_the_pythons_of_a_group_count_though_they_move_nothing(tmp_path: Path) -> None:
    project = PROJECT.replace(
        "dependency-groups = {", "dependency-groups = {test = {requires-python = '>=3.10'}, "
    )
    assert read_import(write(tmp_path, project)).ignored == ()
    table = '[package.group-requires-python]\nnew = ">=3.13"\n'
    lock = LOCK.replace("revision = 3", "revision = 5").replace(
        "[package.metadata]", f"{table}[package.metadata]"
    )
    assert read_import(write(tmp_path, PROJECT, lock)).ignored == ()
    lines = read_import(write(tmp_path, project, lock)).ignored
    assert [line.partition("pyproject.toml: ")[2] for line in lines] == [
        f"the Pythons of dependency-groups.{group} are other ones than when the lock was made"
        for group in ("dev", "test")
    ]
    lock = lock.replace('new = ">=3.13"', 'dev = ">=3.10"\nnew = ">=3.13.0"\ntest = ">=3.10"')
    assert read_import(write(tmp_path, project, lock)).ignored == ()


def test_default_groups_count_in_locks_that_have_them(tmp_path: Path) -> None:
    project = PROJECT.replace("[tool.uv]", '[tool.uv]\ndefault-groups = ["test"]')
    assert not [line for line in read_import(write(tmp_path, project)).ignored if "out of date" in line]
    table = '[package.group-requires-python]\nnew = ">=3.13"\n[package.metadata]'
    lock = LOCK.replace("revision = 3", "revision = 5").replace("[package.metadata]", table)
    (line,) = (each for each in read_import(write(tmp_path, project, lock)).ignored if "out of date" in each)
    assert "tool.uv.default-groups is not the setting that the lock was made with" in line
    lock = lock.replace('source = { virtual = "." }', 'source = { virtual = "." }\ndefault-groups = ["test"]')
    assert not [line for line in read_import(write(tmp_path, project, lock)).ignored if "out of date" in line]


def test_a_lock_for_one_patch_version_of_python_is_compared(tmp_path: Path) -> None:
    project, lock = PROJECT.replace(">=3.11,<3.15", "==3.11.1"), LOCK.replace(">=3.11, <3.15", "==3.11.1")
    assert read_import(write(tmp_path, project, lock))
    with pytest.raises(RequestError, match=r"asks for idna==3\.6"):
        read_import(write(tmp_path, project.replace("idna==3.7", "idna==3.6"), lock))


def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    dynamic = 'dynamic = ["dependencies", "optional-dependencies"]'
    project = re.sub(r"(?s)dependencies = \[\n.*?\n\]\n", f"{dynamic}\n", PROJECT, count=1)
    project = re.sub(r"(?s)\[project.optional.*?(?=\[dependency)", "", project)
    (line,) = read_import(write(tmp_path, project)).ignored
    assert line.endswith("has dynamic dependencies")
    assert "cannot tell if it is up to date" in line
    old = re.sub(r"(?s)\[package.metadata\].*", "", LOCK)
    plain = re.sub(r"(?s)\[tool.*", "", PROJECT)
    (line,) = read_import(write(tmp_path, plain, re.sub(r"(?s)\[manifest.*?(?=\[\[)", "", old))).ignored
    assert line.endswith("does not say what it was made for")
    (line,) = read_import(
        write(tmp_path, PROJECT.replace('"six;', "\"six; python_version in '3.8, 3.9' and"))
    ).ignored
    assert "uv ignores a part of six ; python_version in " in line


def test_a_form_that_is_unknown_is_said(tmp_path: Path) -> None:
    (line,) = read_import(
        write(tmp_path, PROJECT.replace('"part"', '"part @ file:///${HERE}/part"', 1))
    ).ignored
    assert "cannot tell if it is up to date: " in line
    assert "file:///${HERE}/part" in line
    scoped = '[{package = {name = "idna"}, dependencies = ["colorama"]}]'
    (line,) = read_import(write(tmp_path, PROJECT.replace('["colorama"]', scoped))).ignored
    assert "uv.lock: cannot tell if it is up to date: a part of it or of its project is unknown: " in line


def test_the_members_of_a_workspace_are_compared(tmp_path: Path) -> None:
    root = '[tool.uv.workspace]\nmembers = ["m"]\n[dependency-groups]\ndev = ["idna"]\n'
    (tmp_path / "m").mkdir()
    member = tmp_path / "m/pyproject.toml"
    member.write_text('[project]\nname = "m"\nversion = "1"\ndependencies = ["idna>3"]\n')
    lock = re.sub(r"(?s)\[manifest\].*?(?=\[\[)", '[manifest]\nmembers = ["m"]\nDEV\n', LOCK)
    lock = re.sub(r"(?s)requires-dist = .*", 'requires-dist = [{ name = "idna", specifier = ">3" }]\n', lock)
    lock = lock.replace("own-app", "m").replace('virtual = "."', 'virtual = "m"')
    good = lock.replace("DEV", '[manifest.dependency-groups]\ndev = [{ name = "idna" }]')
    assert read_import(write(tmp_path, root, good))
    with pytest.raises(RequestError, match=r"groups\.dev asks for idna, .* without it"):
        read_import(write(tmp_path, root, lock.replace("DEV", "")))
    member.write_text(member.read_text().replace(">3", ">2"))
    with pytest.raises(RequestError, match=r"m/pyproject\.toml: .* asks for idna>2, .* made for idna>3"):
        read_import(write(tmp_path, root, good))
