"""A pylock.toml with groups and extras: which packages of it are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import GOLDEN
from reprobuild.errors import RequestError
from reprobuild.imports.recognize import read_import
from reprobuild.imports.request_keys import request_table
from support.fixtures import fixtures_of
from support.team_files import WINDOWS, Write, table

globals().update(fixtures_of("support.team_files"))

PDM = """lock-version = "1.0"
requires-python = "==3.11.*"
extras = ["x"]
dependency-groups = ["default", "dev"]
default-groups = ["default"]
created-by = "pdm"
""" + "".join(
    f'[[packages]]\nname = "{name}"\nversion = "1"\nmarker = "{marker}"\n'
    f'wheels = [{{ url = "https://files.example/{name}-1-py3-none-any.whl", '
    f'hashes = {{ sha256 = "{str(digit) * 64}" }} }}]\n'
    for digit, (name, marker) in enumerate(
        {
            "a": "'default' in dependency_groups",
            "b": "'x' in extras or 'dev' in dependency_groups",
            "c": "'dev' in dependency_groups and sys_platform == 'linux'",
            "d": "'default' in dependency_groups and sys_platform == 'win32'",
        }.items()
    )
)
"""As PDM writes it with `lock.format` set to `pylock`: https://pdm-project.org/latest/usage/lockfile/."""


@pytest.mark.parametrize(
    ("extras", "groups", "names"),
    [((), (), "a"), (("x",), (), "ab"), ((), ("dev",), "abc"), (("X",), ("dev",), "abc")],
)
def test_a_pylock_gives_its_default_groups_and_those_asked_for(
    tmp_path: Path, extras: tuple[str, ...], groups: tuple[str, ...], names: str
) -> None:
    (tmp_path / "pylock.toml").write_text(PDM)
    found = read_import(tmp_path / "pylock.toml", extras=extras, groups=groups)
    assert request_table(found, {"cuda": "cpu"})["packages"] == [f"{name}==1" for name in names]
    assert sorted(found.hashes) == list(names)


def test_a_pylock_of_nothing_that_is_asked_for_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pylock.toml").write_text(PDM.replace('default-groups = ["default"]\n', ""))
    with pytest.raises(RequestError, match="no package is for Linux") as caught:
        read_import(tmp_path / "pylock.toml")
    assert caught.value.hint == "name a group or an extra: default, dev, x"
    with pytest.raises(RequestError, match="no group 'none'"):
        read_import(tmp_path / "pylock.toml", groups=["none"])


def test_our_own_lock_is_read_like_any_other() -> None:
    imported = read_import(GOLDEN / "pylock.torch-cu121.toml")
    found = request_table(imported, {})
    assert (found["name"], found["python"], found["cuda"], found["torch"]) == (
        "torch-cu121",
        "3.11",
        "12.1",
        "2.4.1",
    )
    assert "numpy==1.26.4" in found["packages"]
    assert len(imported.hashes["numpy"]) == 1


def test_a_source_archive_is_a_pin_with_its_hash(write: Write) -> None:
    text = 'lock-version = "1.0"\ncreated-by = "x"\n'
    sdist = (
        f'{{name = "first-1.0.tar.gz", url = "https://example.org/x", hashes = {{sha256 = "{"0" * 64}"}}}}'
    )
    text += f'[[packages]]\nname = "first"\nversion = "1.0"\nsdist = {sdist}\n'
    imported = read_import(write("pylock.toml", text))
    assert [str(each) for each in imported.requirements] == ["first==1.0"]
    assert imported.hashes == {"first": frozenset({"0" * 64})}


def test_repositories_archives_and_folders_of_a_lock_are_addresses(write: Write, tmp_path: Path) -> None:
    commit, digest = "1" * 40, "0" * 64
    text = f"""
lock-version = "1.0"
created-by = "x"
[[packages]]
name = "repo"
vcs = {{type = "git", url = "https://git.example/repo.git", commit-id = "{commit}", subdirectory = "py"}}
[[packages]]
name = "archive"
archive = {{url = "https://x.example/a-1.tar.gz", subdirectory = "py", hashes = {{sha256 = "{digest}"}}}}
[[packages]]
name = "own"
directory = {{path = "libs/own", editable = true}}
[[packages]]
name = "elsewhere"
marker = "sys_platform == 'win32'"
directory = {{path = "libs/elsewhere"}}
"""
    (tmp_path / "libs/own").mkdir(parents=True)
    (tmp_path / "libs/own/pyproject.toml").write_text('[project]\nname = "own"\n')
    imported = read_import(write("pylock.toml", text))
    assert [str(each) for each in imported.requirements] == [
        f"repo @ git+https://git.example/repo.git@{commit}#subdirectory=py",
        f"archive @ https://x.example/a-1.tar.gz#sha256={digest}&subdirectory=py",
        f"own @ file://{tmp_path}/libs/own",
    ]


def test_a_lock_s_hashes_are_those_of_what_it_installs_here(write: Write) -> None:
    """A package that is taken out by a marker may come by way of another, in another version."""
    text = 'lock-version = "1.0"\ncreated-by = "x"\n' + "".join(
        f'[[packages]]\nname = "{name}"\nversion = "1"\nmarker = "{marker}"\n[[packages.wheels]]\n'
        f'url = "https://x.example/{name}-1-py3-none-any.whl"\nhashes = {{sha256 = "{"0" * 64}"}}\n'
        for name, marker in (
            ("here", "sys_platform == 'linux'"),
            ("new", "python_version >= '3.13'"),
            ("gone", "sys_platform == 'never'"),
        )
    )
    assert list(read_import(write("pylock.toml", text)).hashes) == ["here", "new"]


def test_what_a_lock_names_nothing_of_is_named(write: Write) -> None:
    head = 'lock-version = "1.0"\ncreated-by = "x"\n'
    text = head + "".join(f'[[packages]]\nname = "{name}"\nversion = "1.0"\n' for name in ("first", "second"))
    with pytest.raises(RequestError, match=r"source archive, repository or folder of first, second$"):
        read_import(write("pylock.toml", text))
    hg = f'vcs = {{type = "hg", url = "https://x.example/a", commit-id = "{"1" * 40}"}}'
    with pytest.raises(RequestError, match=r"pylock\.toml: packages \(a\): comes from hg, and only git"):
        read_import(write("pylock.toml", f'{head}[[packages]]\nname = "a"\n{hg}\n'))


def test_a_lock_s_packages_for_another_system_and_wheels_without_a_hash(write: Write) -> None:
    imported = read_import(write("pylock.toml", WINDOWS))
    assert table(write("pylock.toml", WINDOWS), cuda="cpu")["packages"] == ["a==1.0"]
    assert imported.hashes == {}


def test_an_error_in_a_lock_names_the_package(write: Write) -> None:
    with pytest.raises(RequestError, match=r"packages\[2\] \(a\)"):
        read_import(write("pylock.toml", WINDOWS.replace("wheels = [{", "wheels = 3 # [{")))


def test_a_marker_on_groups_of_a_lock(write: Write) -> None:
    head, _, last = WINDOWS.rpartition("[[packages]]\n")
    lock = f"{head}[[packages]]\nmarker = \"'dev' not in dependency_groups\"\n{last}"
    assert table(write("pylock.toml", lock), cuda="cpu")["packages"] == ["a==1.0"]


ONE = """lock-version = "1.0"
created-by = "pip"
[[packages]]
name = "c"
version = "1"
wheels = [{ url = "https://files.example/c-1-TAG-manylinux_2_17_x86_64.whl", hashes = { sha256 = "HASH" } }]
[[packages]]
name = "d"
version = "1"
marker = "python_version < '3.12'"
archive = { url = "https://files.example/d.zip", hashes = { sha256 = "HASH" } }
""".replace("HASH", "0" * 64)


@pytest.mark.parametrize(
    ("tag", "requires", "given", "python", "names"),
    [
        ("cp313-cp313", "", {}, "3.13", "c"),
        ("cp311-cp311", "", {}, "3.11", "cd"),
        ("cp313-cp313", ">=3.12", {"python": "3.12"}, "3.12", "c"),
        ("cp312-abi3", ">=3.12", {}, "3.13", "c"),
        ("py3-none", "", {"python": "3.10"}, "3.10", "cd"),
    ],
)
def test_a_pylock_is_read_for_a_python_that_it_has_wheels_for(
    tmp_path: Path, tag: str, requires: str, given: dict[str, str], python: str, names: str
) -> None:
    """What `pip lock` writes names no Python: it is for that of the pip."""
    line = f'requires-python = "{requires}"\n' if requires else ""
    (tmp_path / "pylock.toml").write_text(line + ONE.replace("TAG", tag))
    keys = request_table(read_import(tmp_path / "pylock.toml", **given), {"cuda": "cpu", **given})
    assert keys["python"] == python
    assert [each[0] for each in keys["packages"]] == list(names)
