"""Where uv takes the settings of a project from: each case as `uv export` in the project's folder has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.imports.recognize import read_import

ROOT = '[project]\nname = "r"\nversion = "1"\ndependencies = []\n'
WORKSPACE = '[tool.uv.workspace]\nmembers = ["m"]\n'
MEMBER = '[project]\nname = "m"\nversion = "1"\ndependencies = ["idna"]\n'
IN_ROOT, IN_MEMBER = 'exclude-newer = "2024-01-01"\n', 'exclude-newer = "2022-01-01"\n'


@pytest.mark.parametrize(
    ("root", "member", "root_toml", "member_toml", "newest"),
    [
        (f"[tool.uv]\n{IN_ROOT}{WORKSPACE}", "", "", "", "2024-01-01"),
        (WORKSPACE, f"[tool.uv]\n{IN_MEMBER}", "", "", "None"),
        (f"[tool.uv]\n{IN_ROOT}{WORKSPACE}", f"[tool.uv]\n{IN_MEMBER}", "", "", "2024-01-01"),
        (WORKSPACE, "", IN_ROOT, "", "2024-01-01"),
        (WORKSPACE, "", "", IN_MEMBER, "None"),
        # No workspace: the first folder that has settings.
        (f"[tool.uv]\n{IN_ROOT}", "", "", "", "2024-01-01"),
        (f"[tool.uv]\n{IN_ROOT}", "[tool.uv.sources]\n", "", "", "None"),
        (f"[tool.uv]\n{IN_ROOT}", "", "", IN_MEMBER, "2022-01-01"),
        ("", "[tool.ruff]\n", IN_ROOT, "", "2024-01-01"),
        ("", "", "", "", "None"),
    ],
)
def test_settings_are_those_of_the_workspace_or_of_the_nearest_folder_above(
    tmp_path: Path, root: str, member: str, root_toml: str, member_toml: str, newest: str
) -> None:
    folder = tmp_path / "m"
    folder.mkdir()
    (tmp_path / "pyproject.toml").write_text(ROOT + root)
    (folder / "pyproject.toml").write_text(MEMBER + member)
    for place, text in ((tmp_path, root_toml), (folder, member_toml)):
        if text:
            (place / "uv.toml").write_text(text)
    found = read_import(folder / "pyproject.toml")
    assert str(found.exclude_newer) == newest
    named = [line.partition(": its settings of uv count")[0] for line in found.applied]
    origins = {"2024-01-01": tmp_path / ("uv.toml" if root_toml else "pyproject.toml")}
    origins["2022-01-01"] = folder / "uv.toml"
    assert named == ([str(origins[newest])] if newest in origins else [])


def test_rules_of_a_folder_above_are_not_those_of_a_project_below(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "pyproject.toml").write_text(f'{ROOT}[tool.uv]\nconstraint-dependencies = ["idna<3"]\n')
    (tmp_path / "m/pyproject.toml").write_text(MEMBER)
    found = read_import(tmp_path / "m/pyproject.toml")
    assert (found.constraints, found.applied) == ((), ())


def test_indexes_of_a_member_count_for_its_sources_alone_and_those_of_its_root_for_all(
    tmp_path: Path,
) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "pyproject.toml").write_text(
        f'{ROOT}{WORKSPACE}[[tool.uv.index]]\nurl = "https://root.example/simple"\n'
    )
    (tmp_path / "m/pyproject.toml").write_text(
        f'{MEMBER}[[tool.uv.index]]\nurl = "https://member.example/simple"\ndefault = true\n'
    )
    found = read_import(tmp_path / "m/pyproject.toml", hosts={"root.example"})
    assert found.settings == {"UV_INDEX": ("https://root.example/simple",)}


def test_a_file_outside_the_repository_gives_no_settings(tmp_path: Path) -> None:
    (tmp_path / "uv.toml").write_text(IN_ROOT)
    (tmp_path / "m/.git").mkdir(parents=True)
    (tmp_path / "m/pyproject.toml").write_text(MEMBER)
    found = read_import(tmp_path / "m/pyproject.toml")
    assert found.exclude_newer is None
    says = f"{tmp_path / 'uv.toml'}: uv takes settings from it, and it is outside of the repository"
    assert found.ignored == (says,)
    (tmp_path / "m/uv.toml").write_text("")  # uv looks no further
    assert read_import(tmp_path / "m/pyproject.toml").ignored == ()
