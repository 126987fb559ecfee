"""An interpreter with torch, and virtual environments of it that look like the one in an image."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from reprobuild import in_image
from reprobuild.render.program import selftest_program
from reprobuild.request import profiles
from reprobuild.request.model import Request

VARIABLE = "REPROBUILD_TEST_TORCH_PYTHON"
_ASKED = os.environ.get(VARIABLE)  # at import: conftest.py takes all such variables away
FILES = Path(in_image.__file__).parent


def write_program(folder: Path) -> Path:
    """Write the self-test and its golden values into a folder, as they lie in an image; return its path."""
    shutil.copy(FILES / "golden.json", folder)
    program = folder / "selftest.py"
    program.write_bytes(selftest_program())
    return program


def program_of(python: Path) -> Path:
    """Return the self-test beside an environment of `make_venv`."""
    return python.parents[1] / "selftest.py"


@functools.cache
def _site_packages() -> Path | str:
    """Return where torch lies, or why there is none."""
    python = _ASKED or shutil.which("python3") or sys.executable
    code = "import torch, os; print(os.path.dirname(os.path.dirname(torch.__file__)))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        return f"{python} has no torch; set {VARIABLE} to an interpreter that has"
    return Path(done.stdout.strip())


def need_torch() -> Path:
    """Return the folder that holds torch; skip the test without one, fail it in CI."""
    found = _site_packages()
    if isinstance(found, str):
        if os.environ.get("CI"):
            pytest.fail(found)
        pytest.skip(found)
    return found


def make_venv(
    folder: Path, *, torch: bool, hook: bool = True, files: Mapping[str, str] | None = None
) -> Path:
    """Make a virtual environment, the self-test in its folder, and return its interpreter.

    ``torch``: the one that was found, by a path; ``hook``: reprobuild's, as in an image; ``files``: more
    files, by name, in its site-packages.
    """
    base = _ASKED if torch and _ASKED else sys.executable
    subprocess.run([base, "-m", "venv", "--without-pip", folder], check=True)
    site = next((folder / "lib").glob("python*/site-packages"))
    if torch:
        (site / "torch_path.pth").write_text(f"{need_torch()}\n")
    if hook:
        for name in ("reprobuild_hook.py", "reprobuild.pth"):
            shutil.copy(FILES / name, site / name)
    write_program(folder)
    for name, text in (files or {}).items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    return folder / "bin/python"


@functools.cache
def numpy_version() -> str | None:
    """Return the version of the NumPy beside torch; None where there is no torch."""
    found = _site_packages()
    if isinstance(found, str):
        return None
    return next(place.stem.split("-")[1] for place in found.glob("numpy-*.dist-info"))


def image_environment(profile: str = "strict", **changes: str | None) -> dict[str, str]:
    """Return the environment of an image of a profile; a change to None takes a variable away."""
    request = Request.from_dict({"cuda": "cpu", "determinism": {"profile": profile}}, "test")
    environment = {"PATH": os.defpath, **profiles.variables(request, numpy_version())}
    for name, value in changes.items():
        environment.pop(name, None)
        if value is not None:
            environment[name] = value
    return environment


def run(
    python: Path, *argv: str | Path, env: Mapping[str, str] | None = None, timeout: float = 1800
) -> subprocess.CompletedProcess[str]:
    """Run an interpreter, by default in an image's environment; any exit status is returned.

    Its time is limited to many times what it takes, since others may use the machine, too.
    """
    return subprocess.run(
        [python, *argv],
        capture_output=True,
        text=True,
        check=False,
        env=env or image_environment(),
        timeout=timeout,
    )


def torch_python() -> str:
    """Return the interpreter that `need_torch` found."""
    return _ASKED or shutil.which("python3") or sys.executable
