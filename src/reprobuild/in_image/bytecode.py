"""Compile the Python files of an environment to bytecode that is the same every time.

``bytecode.py --venv /opt/venv``: the files of every distribution of that environment, in place.
``--missing``: only of distributions that have none yet.
``bytecode.py --stage DIR --site SITE``: those below each folder of DIR, as if the folder were SITE.

Each distribution is compiled in a fresh process of its own, its files in sorted order: what the marshaller
shares between code objects depends on what the process has compiled before (python/cpython#129724). So a
distribution's bytecode depends on its own files alone. The bytecode is "unchecked-hash": no time stamp
stands in it, and importing does not look at the source. A file that does not compile is left out, as pip
does. Exit status 0, or 1 with a message when a process failed. Standard library only.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import os
import py_compile
import re
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def of_environment(venv: Path, *, missing: bool = False) -> list[list[tuple[str, str]]]:
    """Return, for each distribution, its (source file, name in tracebacks).

    A file that several distributions name is that of the first by normalised name, which pip installs last.
    """
    (site,) = venv.glob("lib/python3*/site-packages")
    found = []
    taken: set[str] = set()
    for record in sorted(site.glob("*.dist-info/RECORD"), key=_distribution):
        with record.open(newline="", encoding="utf-8") as file:
            names = {row[0] for row in csv.reader(file) if row} - taken
        taken |= names
        paths = [str(site / n) for n in sorted(names) if n.endswith(".py") and not n.startswith("../")]
        paths = [path for path in paths if Path(path).is_file()]
        if not (missing and any(Path(importlib.util.cache_from_source(path)).exists() for path in paths)):
            found.append([(path, path) for path in paths])
    return found


def _distribution(record: Path) -> str:
    name = record.parent.name.rpartition("-")[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def of_stage(stage: Path, site: str) -> list[list[tuple[str, str]]]:
    """Return, for each folder of the stage, its (source file, name in tracebacks)."""
    found = []
    for folder in sorted(stage.iterdir()):
        names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.py") if p.is_file())
        found.append([(str(folder / name), f"{site}/{name}") for name in names])
    return found


def compile_here(files: list[tuple[str, str]]) -> None:
    """Compile files, in the order given, each to ``__pycache__`` beside it."""
    warnings.simplefilter("ignore")
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    for source, name in files:
        try:
            target = importlib.util.cache_from_source(source, optimization="")
            py_compile.compile(source, target, name, doraise=True, invalidation_mode=mode)
        except (py_compile.PyCompileError, ValueError, RecursionError, UnicodeError):
            continue
        Path(target).chmod(0o644)


def _start(files: list[tuple[str, str]]) -> int:
    # Not -I: it would ignore PYTHONHASHSEED, and the order of a constant set would change.
    command = [sys.executable, "-S", "-B", "-X", "utf8", __file__, "--list"]
    env = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "PATH": os.environ.get("PATH", "/usr/bin:/bin")}
    return subprocess.run(command, input=json.dumps(files).encode(), env=env, check=False).returncode


def main() -> int:
    """Read the arguments and compile."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--venv", type=Path)
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--stage", type=Path)
    parser.add_argument("--site")
    parser.add_argument(
        "--list", action="store_true", help="compile the files listed on standard input, here"
    )
    options = parser.parse_args()
    if options.list:
        compile_here(json.load(sys.stdin))
        return 0
    work = (
        of_environment(options.venv, missing=options.missing)
        if options.venv
        else of_stage(options.stage, options.site)
    )
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        # The longest first, so that no worker is left with it at the end.
        codes = list(pool.map(_start, sorted(work, key=len, reverse=True)))
    if any(codes):
        sys.stderr.write("bytecode.py: a compiling process failed\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
