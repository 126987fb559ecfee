"""The programs of an image run by its own Python, down to 3.8."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import reprobuild
from reprobuild.render.program import selftest_program

PACKAGE = Path(reprobuild.__file__).parent
_METHODS = re.compile(r"\.(removeprefix|removesuffix|is_relative_to)\(")
"""Of 3.9, which vermin cannot tell, not knowing of what type an object is."""


def test_they_use_nothing_newer_than_python_3_8(tmp_path: Path) -> None:
    program = tmp_path / "selftest.py"
    program.write_bytes(selftest_program())
    paths = [PACKAGE / "in_image", PACKAGE / "programs/build_wheel.py", program]
    command = [
        str(Path(sys.executable).with_name("vermin")),
        "--no-tips",
        "-vvv",
        "-t=3.8-",
        *("--exclude", "sentinel"),  # it takes that of a process for the built-in of 3.15
        *map(str, paths),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    files = [file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])]
    assert not [file for file in files if _METHODS.search(file.read_text("utf-8"))]
