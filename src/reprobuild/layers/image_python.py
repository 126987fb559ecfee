"""Output of the image's own interpreter: the environment's skeleton, and bytecode."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path

from .. import assets
from ..errors import BuildError
from ..host import process, sandbox, untrusted_files
from ..host.home import storage_errors
from ..lock.model import Lock
from ..oci.tar_writer import LayerWriter, parents
from ..request.image_layout import SITE_PREFIX

_MOUNT = "/mnt"
_MOST_SECONDS = 3600
"""Time limit to compile all packages; a hundred times what the largest images need on two processors."""
_LARGEST = 1 << 26
"""Bytes of a file of the environment's skeleton; the interpreter itself may be copied into it."""


def run_interpreter(lock: Lock, below: Sequence[Path], workshop: Path, *, environment: bool) -> Path:
    """Compile the packages in ``workshop/stage``, one archive each; optionally create the environment.

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
    # -I -S: nothing that a base image has put in the way of its Python is run at its start.
    script = f"umask 022; {python} -I -S -B {_MOUNT}/bytecode.py --stage {_MOUNT}/stage"
    if environment and not lock.conda:
        script += f" && {python} -I -m venv --without-pip {SITE_PREFIX}"
    task = sandbox.Task(
        argv=["/bin/sh", "-c", script],
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0"},
        binds=[
            sandbox.Bind(source=workshop / "bytecode.py", destination=f"{_MOUNT}/bytecode.py"),
            sandbox.Bind(source=workshop / "stage", destination=f"{_MOUNT}/stage", writable=True),
        ],
        writable=True,
    )
    what = "the image's interpreter did not compile the packages"
    slow = "run again with -v; if the interpreter is that of a base image, try another base"
    with process.named_when_stopped(BuildError, what, slow=slow):
        done = sandbox.run(bundle, below, task, timeout=_MOST_SECONDS)
    if done.returncode != 0:
        raise BuildError(
            f"the image's interpreter could not compile the packages: {process.tail(done.stderr)}",
            hint="run again with -v; if a package's files are at fault, ask for another version of it",
        )
    return bundle / "upper"


def write_environment(upper: Path, out: LayerWriter) -> None:
    """Write the environment that `run_interpreter` has left in the run's upper folder.

    Raises `BuildError` where something else than folders, files and links is in it.
    """
    top = SITE_PREFIX.lstrip("/")
    root = untrusted_files.folder(upper, top)
    if root is None:
        raise BuildError(
            f"the image's interpreter made no environment: {SITE_PREFIX} is not a folder",
            hint="run again with -v; if the interpreter is that of a base image, try another base",
        )
    for folder in parents([top]):
        out.folder(folder)
    out.folder(top)
    for path, found in sorted((f"{top}/{path}", found) for path, found in untrusted_files.walk(root)):
        if stat.S_ISLNK(found.st_mode):
            out.link(path, str((upper / path).readlink()))
        elif stat.S_ISDIR(found.st_mode):
            out.folder(path)
        else:
            with untrusted_files.opened(upper, path) as file:
                content = file.read(_LARGEST + 1)
            if len(content) > _LARGEST:
                raise BuildError(f"the image's interpreter made /{path} larger than {_LARGEST} bytes")
            out.file(path, 0o755 if found.st_mode & 0o111 else 0o644, len(content), [content])
