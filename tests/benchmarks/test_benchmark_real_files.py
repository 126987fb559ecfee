"""Dependency files of real projects lock, or stop with a message that helps.

The files are not ours to copy; `real_files.txt` says where they are from. ``REPROBUILD_REAL_FILES`` names a
folder with a checkout of each project, called ``owner+name``. The index is that of the machine.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.benchmark

FOLDER = os.environ.get("REPROBUILD_REAL_FILES", "")
LIST = Path(__file__).with_name("real_files.txt")
SHARE = 0.75
"""Of all files that lock, of those whose hosts this machine reaches."""

_OTHER_CUDA = re.compile(r"is built for CUDA ([0-9.]+)|resolved for CUDA ([0-9.]+)|give --cuda ([0-9.]+|cpu)")
_UNREACHED = re.compile(r"git cannot read it|cannot be reached|channel cannot be read")


def locked(project: Path, file: str) -> tuple[int, str]:
    """Lock one file, for the CUDA that it turns out to want; return the status and what was said."""
    tried: set[str] = set()
    cuda = "12.8"
    while True:
        tried.add(cuda)
        command = [sys.executable, "-m", "reprobuild", "lock", "--from", file, "--cuda", cuda, "--name", "x"]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=900, check=False)
        other = _OTHER_CUDA.search(done.stderr)
        wanted = next(filter(None, other.groups()), None) if other is not None else None
        if done.returncode == 0 or wanted is None or wanted in tried:
            return done.returncode, done.stderr
        cuda = wanted


@pytest.mark.skipif(not FOLDER, reason="REPROBUILD_REAL_FILES names no folder")
def test_three_of_four_real_files_lock(tmp_path: Path) -> None:
    good, judged = 0, 0
    for number, line in enumerate(LIST.read_text().splitlines()):
        if line.startswith("#"):
            continue
        project, _, file = line.split(" ", 2)
        folder = tmp_path / str(number)
        shutil.copytree(Path(FOLDER, project.replace("/", "+")), folder, symlinks=True)
        status, said = locked(folder, file)
        print(f"{'locked' if status == 0 else status}  {project}: {file}", flush=True)
        judged += not _UNREACHED.search(said)
        good += status == 0
        # What stops says why, and what to do.
        assert status in (0, 3, 5, 6, 8), said
        assert status == 0 or ("hint:" in said and "Traceback" not in said), said
    print(f"{good} of {judged}")
    assert good >= SHARE * judged
