"""The two things that only the image's own interpreter can make: the environment's skeleton, and bytecode."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from .. import assets
from ..errors import BuildError
from ..host import process, sandbox
from ..host.home import storage_errors
from ..lock.model import Lock
from ..oci.tar_writer import LayerWriter, parents
from ..request.profiles import SITE_PREFIX

_MOUNT = "/mnt"


def run_interpreter(lock: Lock, below: Sequence[Path], workshop: Path, *, environment: bool) -> Path:
    """Compile what lies in ``workshop/stage``, an archive a package, and make the environment if asked to.

    ``below`` are the unpacked layers that bring it, lowest first. Where conda brings it, the environment is
    there already. Returns the folder in which the environment lies, as ``opt/venv``.
    Raises `BuildError`, `HostError`.
    """
    python = lock.interpreter
    with storage_errors(workshop):
        (workshop / "stage").mkdir(exist_ok=True)
        (workshop / "bytecode.py").write_bytes(assets.in_image("bytecode.py"))
        bundle = workshop / "bundle"
        bundle.mkdir()
    script = f"umask 022; {python} {_MOUNT}/bytecode.py --stage {_MOUNT}/stage"
    if environment and not lock.conda:
        script += f" && {python} -m venv --without-pip {SITE_PREFIX}"
    task = sandbox.Task(
        argv=["/bin/sh", "-c", script],
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0"},
        binds=[sandbox.Bind(source=workshop, destination=_MOUNT, writable=True)],
        writable=True,
    )
    done = sandbox.run(bundle, below, task)
    if done.returncode != 0:
        raise BuildError(
            f"the image's interpreter could not compile the packages: {process.tail(done.stderr)}",
            hint="run again with -v; if a package's files are at fault, ask for another version of it",
        )
    return bundle / "upper"


def write_environment(upper: Path, out: LayerWriter) -> None:
    """Write the environment that `run_interpreter` has left in the run's upper folder."""
    top = SITE_PREFIX.lstrip("/")
    root = upper / top
    paths = [p.relative_to(upper).as_posix() for p in root.rglob("*")]
    for folder in parents([top]):
        out.folder(folder)
    for path in sorted([top, *paths]):
        source = upper / path
        if source.is_symlink():
            out.link(path, str(source.readlink()))
        elif source.is_dir():
            out.folder(path)
        else:
            content = source.read_bytes()
            mode = 0o755 if os.access(source, os.X_OK) else 0o644
            out.file(path, mode, len(content), [content])
