"""A process that a program starts with variables of its own."""

from __future__ import annotations

import json
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

from reprobuild.engines.twice_mounts import PACKAGE, PATH_FILE, environment, recorder_files, recorder_tar
from reprobuild.in_image.twice.settings import FILE as SETTINGS
from reprobuild.in_image.twice.settings import VALUES


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The interpreter of an environment that has the recorder as a run of an image has it."""
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    site = tmp_path / "venv" / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    (tmp_path / "records").mkdir()
    (site / PACKAGE).mkdir()
    settings = {
        "REPROBUILD_TWICE": str(tmp_path / "records"),
        "REPROBUILD_TWICE_EVERY": "1\n2=3",
        "SECRET": "x",
    }
    for name, content in recorder_files(settings).items():
        (site / PACKAGE / name).write_bytes(content)
    (site / f"{PACKAGE}.pth").write_bytes(PATH_FILE)
    return tmp_path / "venv" / "bin" / "python"


def test_it_is_recorded_as_well(python: Path, tmp_path: Path) -> None:
    child = "import os, time; print(f'{time.time() - 0:.1f}', sorted(os.environ.items()))"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], env={{}})"
    done = subprocess.run([python, "-c", program], env={}, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert repr("1\n2=3") in done.stdout
    assert "SECRET" not in done.stdout
    kept = [json.loads(path.read_text()) for path in (tmp_path / "records").glob("*.evidence")]
    assert len(kept) == 2
    assert any(site[0] == "text" and site[4][0] in done.stdout for each in kept for site in each["sites"])


def test_one_that_has_them_keeps_its_own(python: Path, tmp_path: Path) -> None:
    (tmp_path / "others").mkdir()
    env = {"REPROBUILD_TWICE": str(tmp_path / "others")}
    subprocess.run([python, "-c", "import time; time.time()"], env=env, check=True)
    assert not [*(tmp_path / "records").iterdir()]
    assert [*(tmp_path / "others").glob("*.evidence")]


def test_what_is_too_long_for_an_environment_stands_in_the_file_alone(python: Path) -> None:
    given = {"REPROBUILD_TWICE_EVERY": "1", VALUES: "v" * 300_000}
    assert environment(given) == {"REPROBUILD_TWICE_EVERY": "1"}
    site = next(python.parents[1].glob("lib/python3*/site-packages"))
    (site / PACKAGE / SETTINGS).write_bytes(recorder_files(given)[SETTINGS])
    program = (
        "import os, reprobuild_twice.settings as s;"
        f"print(len(s.every()[b'{VALUES}']), '{VALUES}' in os.environ, os.environ['REPROBUILD_TWICE_EVERY'])"
    )
    done = subprocess.run([python, "-c", program], env={}, capture_output=True, text=True, check=True)
    assert done.stdout == "300000 False 1\n"


def test_the_recorder_of_a_container_has_them_too() -> None:
    assert b"REPROBUILD_TWICE_EVERY=7\0" in recorder_tar("/site", [], {"REPROBUILD_TWICE_EVERY": "7"})
