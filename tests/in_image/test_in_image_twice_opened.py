"""Which files a Python program opens for reading, by the recorder's hook."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import reprobuild.in_image.twice
from reprobuild.twice.opened import read_opened

PROGRAM = """
import os, sys
sys.path.insert(0, {package!r})
from opened import install
install()
open("a.txt").close()
open("a.txt", "r+").close()
open(b"b.txt").close()
open("out.txt", "w").close()
open("log.txt", "a").close()
os.close(os.open("c.txt", os.O_RDONLY))
os.close(os.open("d.txt", os.O_WRONLY))
os.listdir(".")
try:
    open("none.txt")
    open("nul\\0.txt")
except (OSError, ValueError):
    pass
import module
if os.fork() == 0:
    open("link.txt").close()
    os._exit(0)
os.wait()
os.chdir("/")
"""


def test_files_that_are_read(tmp_path: Path) -> None:
    records, work = tmp_path / "records", tmp_path / "work"
    records.mkdir()
    work.mkdir()
    for name in ("a.txt", "b.txt", "c.txt", "d.txt", "module.py"):
        (work / name).touch()
    (work / "link.txt").symlink_to("e.txt")
    (work / "e.txt").touch()
    package = Path(reprobuild.in_image.twice.__file__).parent
    env = {"REPROBUILD_TWICE": str(records), "PYTHONPATH": str(work)}
    program = PROGRAM.format(package=str(package))
    subprocess.run([sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, '')\n{program}"],
                   check=True, cwd=work, env=env)  # fmt: skip
    found = [Path(path).name for path in read_opened(records)[0] if path.startswith(str(work))]
    assert found == ["a.txt", "b.txt", "c.txt", "e.txt", "module.py", "none.txt"]
