"""A root with nothing but a Python in it, this machine's own, for builds in a real sandbox."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
INTERPRETER = f"/usr/bin/python{PYTHON}"
_LEFT_OUT = shutil.ignore_patterns(
    *("test", "tests", "site-packages", "dist-packages", "idlelib", "tkinter", "turtledemo", "lib2to3"),
    *("ensurepip", "__pycache__", "config-*", "pydoc_data"),
)


def python_root(folder: Path) -> Path:
    """Lay the root out as an unpacked layer: the interpreter, its libraries and its standard library."""
    program = Path(sys.executable).resolve()
    for name in ("dev", "proc", "sys", "tmp", "etc", "mnt", "build", "usr/bin"):
        (folder / name).mkdir(parents=True)
    _copy(program, folder / INTERPRETER.lstrip("/"))
    library = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix}))
    shutil.copytree(library, folder / f"usr/lib/python{PYTHON}", ignore=_LEFT_OUT, copy_function=_copy)
    for file in (program, *(library / "lib-dynload").glob("*.so")):
        listing = subprocess.run(["ldd", file], capture_output=True, text=True, check=False).stdout
        for found in re.findall(r"(/\S+) \(0x", listing):
            # The dynamic linker looks in /lib, /usr/lib and their folders for the machine.
            name = found.lstrip("/") if "ld-linux" in found else f"usr/lib/{Path(found).name}"
            if not (folder / name).exists():
                _copy(Path(found).resolve(), folder / name)
    if not (folder / "lib").exists():
        (folder / "lib").symlink_to("usr/lib")
    return folder


def _copy(source: str | Path, target: str | Path) -> None:
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(Path(source).resolve(), target)
    except OSError:
        shutil.copy(source, target)
