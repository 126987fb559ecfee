from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from reprobuild import assets

TOP = Path(__file__).resolve().parents[1]


def test_templates_are_found_in_a_checkout() -> None:
    assert assets.template("Dockerfile.j2") == (TOP / "templates" / "Dockerfile.j2").read_text()


def test_templates_are_found_in_an_installed_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As pyproject.toml's force-include lays them out.
    package = tmp_path / "reprobuild"
    (package / "in_image").mkdir(parents=True)
    (package / "in_image" / "a.py").write_bytes(b"# a\n")
    shutil.copytree(TOP / "templates", package / "templates")
    (package / "templates" / "Dockerfile.j2").write_text("from the wheel")
    monkeypatch.setattr("importlib.resources.files", lambda _: package)
    assert assets.template("Dockerfile.j2") == "from the wheel"
    assert assets.in_image("a.py") == b"# a\n"


def test_files_of_the_image_are_given_as_bytes() -> None:
    expected = (TOP / "src" / "reprobuild" / "in_image" / "manifest.py").read_bytes()
    assert assets.in_image("manifest.py") == expected


@pytest.mark.parametrize("find", [assets.template, assets.in_image])
def test_a_missing_file_is_an_error(find: object) -> None:
    assert callable(find)
    with pytest.raises(FileNotFoundError):
        find("no-such-file")
