"""A root with a shell in it, made of this machine's own programs, for tests that run a sandbox."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

PROGRAMS = ("sh", "cat", "env", "grep", "head", "id", "ls", "mkdir", "sleep", "touch", "true", "wc")


def tiny_root(folder: Path, programs: tuple[str, ...] = PROGRAMS) -> Path:
    """Copy some programs, and the libraries that they load, into a new folder; return it."""
    (folder / "usr/bin").mkdir(parents=True)
    for name in ("dev", "proc", "sys", "tmp", "etc", "mnt"):
        (folder / name).mkdir()
    for name in ("bin", "lib", "lib64"):
        (folder / "usr" / name).mkdir(exist_ok=True)
        (folder / name).symlink_to(f"usr/{name}")
    for program in programs:
        found = shutil.which(program, path="/usr/bin:/bin")
        assert found is not None, program
        _copy(Path(found), folder)
        listing = subprocess.run(["ldd", found], capture_output=True, text=True, check=False).stdout
        for library in re.findall(r"(/\S+) \(0x", listing):
            _copy(Path(library), folder)
    return folder


def _copy(source: Path, root: Path) -> None:
    target = root / source.relative_to("/")
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
