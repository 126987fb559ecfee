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
        ("dependency-metadata", '[{name = "a"}]', '[[manifest.dependency-metadata]]\nname = "a"'),
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
