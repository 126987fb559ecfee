"""Compile the Python files of an environment to bytecode that is the same every time.

``bytecode.py --venv /opt/venv``: the files of every distribution of that environment, in place.
``--only FILE``: of those alone that a requirements file names.
``bytecode.py --stage DIR``: every ``DIR/NAME.sources``, to ``DIR/NAME.bytecode``.

Each distribution is compiled in a fresh process of its own, its files in sorted order: what the marshaller
shares between code objects depends on what the process has compiled before (python/cpython#129724). So a
distribution's bytecode depends on its own files alone, and on the processes' being alike: both ways run the
same one (``--stream``), which reads sources from standard input and writes bytecode to standard output.
Each file is a line, ``[PATH, SIZE]`` as JSON, and then its bytes; one file for thousands takes the file
system a fraction of the time.

The bytecode is "unchecked-hash" (PEP 552): no time stamp stands in it, and importing does not look at the
source. A file that does not compile is left out, as pip does. Exit status 0, or 1 with a message when a
process failed. Standard library only.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import marshal
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import BinaryIO

UNCHECKED_HASH = (1).to_bytes(4, "little")


def of_environment(venv: Path, *, only: Collection[str] | None = None) -> list[list[str]]:
    """Return the Python files of each distribution, or of those with a normalised name in ``only``.

    A file that several distributions name is that of the first by normalised name, which pip installs last.
    """
    (site,) = venv.glob("lib/python3*/site-packages")
    found = []
    taken: set[str] = set()
    for record in sorted(site.glob("*.dist-info/RECORD"), key=_distribution):
        if only is not None and _distribution(record) not in only:
            continue
        with record.open(newline="", encoding="utf-8") as file:
            names = {row[0] for row in csv.reader(file) if row} - taken
        taken |= names
        paths = [str(site / n) for n in sorted(names) if n.endswith(".py") and not n.startswith("../")]
        found.append([path for path in paths if Path(path).is_file()])
    return found


def _distribution(record: Path) -> str:
    return _normalised(record.parent.name[: -len(".dist-info")].rpartition("-")[0])


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def names_in(requirements: Path) -> set[str]:
    """Return the names in a requirements file, whose lines begin like ``numpy==1.26.4``."""
    lines = requirements.read_text(encoding="utf-8").splitlines()
    return {_normalised(match[1]) for line in lines if (match := re.match(r"([A-Za-z0-9._-]+)==", line))}


def read(stream: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """Give each file of a stream: path, content."""
    for line in stream:
        path, size = json.loads(line)
        yield path, stream.read(size)


def write(stream: BinaryIO, path: str, content: bytes) -> None:
    """Add a file to a stream."""
    stream.write(json.dumps([path, len(content)]).encode() + b"\n" + content)


def compile_stream(sources: BinaryIO, out: BinaryIO) -> None:
    """Compile the files of a stream in their order; write each under the path that Python looks for."""
    warnings.simplefilter("ignore")
    for path, source in read(sources):
        try:
            code = compile(source, path, "exec", dont_inherit=True, optimize=0)
            body = marshal.dumps(code)
        except Exception:  # noqa: BLE001, S112 -- what a compiler raises on a file that is none of Python's
            continue
        head = importlib.util.MAGIC_NUMBER + UNCHECKED_HASH + importlib.util.source_hash(source)
        write(out, importlib.util.cache_from_source(path, optimization=""), head + body)


def compile_stage(sources: Path) -> int:
    """Compile one archive of sources; return the process's exit status."""
    with sources.open("rb") as source, sources.with_suffix(".bytecode").open("wb") as out:
        return _compile(source, out)


def compile_in_place(paths: list[str]) -> int:
    """Compile files, each to ``__pycache__`` beside it; return the process's exit status."""
    with tempfile.TemporaryFile() as sources, tempfile.TemporaryFile() as out:
        for path in paths:
            write(sources, path, Path(path).read_bytes())
        sources.seek(0)
        status = _compile(sources, out)
        out.seek(0)
        for path, content in read(out):
            target = Path(path)
            target.parent.mkdir(mode=0o755, exist_ok=True)
            target.write_bytes(content)
            target.chmod(0o644)
    return status


def _compile(sources: BinaryIO, out: BinaryIO) -> int:
    # Not -I: it would ignore PYTHONHASHSEED, and the order of a constant set would change.
    command = [sys.executable, "-S", "-B", "-X", "utf8", __file__, "--stream"]
    env = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "PATH": os.environ.get("PATH", "/usr/bin:/bin")}
    sources.flush()
    return subprocess.run(command, stdin=sources, stdout=out, env=env, check=False).returncode


def main() -> int:
    """Read the arguments and compile."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--venv", type=Path)
    parser.add_argument("--only", type=Path)
    parser.add_argument("--stage", type=Path)
    parser.add_argument("--stream", action="store_true")
    options = parser.parse_args()
    if options.stream:
        compile_stream(sys.stdin.buffer, sys.stdout.buffer)
        return 0
    work: list[Callable[[], int]]
    # The longest first, so that no worker is left with it at the end.
    if options.venv:
        only = names_in(options.only) if options.only else None
        lists = sorted(of_environment(options.venv, only=only), key=len, reverse=True)
        work = [partial(compile_in_place, paths) for paths in lists]
    else:
        archives = sorted(options.stage.glob("*.sources"), key=lambda p: (-p.stat().st_size, p.name))
        work = [partial(compile_stage, archive) for archive in archives]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        codes = list(pool.map(lambda call: call(), work))
    if any(codes):
        sys.stderr.write("bytecode.py: a compiling process failed\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
