"""A pylock.toml with groups and extras: which packages of it are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.errors import RequestError
from reprobuild.imports.reader import read_import, request_table

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
