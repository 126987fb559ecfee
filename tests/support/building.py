"""A stand-in for the Debian part of a build: a root of a few files, with this interpreter for its own."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from reprobuild import assets
from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.layers import schedule, system
from reprobuild.layers.plan import place
from reprobuild.lock.model import Lock
from reprobuild.lock.packages import PythonPackage
from reprobuild.oci.tar_writer import LayerWriter
from support.wheels import put, toy_lock, toy_pip

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def lock_for(home: Home, packages: Sequence[PythonPackage]) -> Lock:
    """Return a lock of some packages and a toy pip, for the Python that runs this."""
    lock = toy_lock([put(home, "pip", toy_pip(), "26.0"), *packages])
    return replace(lock, request=replace(lock.request, python=PYTHON))


def without_debian(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let builds do without mmdebstrap and a sandbox; return the list of what they would have run."""
    ran: list[str] = []

    def write_debian(lock: Lock, store: Store, home: Home, out: LayerWriter) -> None:
        ran.append("debian")
        for path in (".", "etc", "usr", "usr/bin"):
            out.folder(path)
        out.file("usr/bin/sh", 0o755, 5, [b"shell"])

    def run_interpreter(lock: Lock, below: Sequence[Path], workshop: Path, *, environment: bool) -> Path:
        ran.append("interpreter")
        assert (below[0] / "usr/bin/sh").read_bytes() == b"shell"
        program = workshop / "bytecode.py"
        program.write_bytes(assets.in_image("bytecode.py"))
        command = [sys.executable, str(program), "--stage", str(workshop / "stage")]
        subprocess.run(command, check=True, umask=0o022)
        upper = workshop / "upper"
        if environment:
            site = upper / place(lock).site
            site.mkdir(parents=True)
            (upper / "opt/venv/lib64").symlink_to("lib")
            (upper / "opt/venv/pyvenv.cfg").write_text("home = /usr/bin\n")
        return upper

    monkeypatch.setattr(system, "write_debian", write_debian)
    monkeypatch.setattr(schedule, "run_interpreter", run_interpreter)
    return ran


def empty_layer() -> LayerWriter:
    """Return a writer into memory."""
    return LayerWriter(io.BytesIO())


def no_context(folder: Path) -> None:
    """Stand in for the rendered context, which the embedded engine does not ask for."""
    raise AssertionError(folder)
