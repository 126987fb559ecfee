"""A folder in which the installed program builds the smallest real image: PyTorch for the CPU."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from reprobuild.errors import ResolveError
from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.pipeline.workspace import read_lock
from support.schemas import hold_to_schema

TORCH = "2.13.0"
NAME = "reprobuild/torch:2.13.0-cpu-py311"


class Bench:
    """A folder with a locked request for PyTorch on the CPU, and a home.

    ``index`` is one on loopback, which is asked before the user's own.
    """

    def __init__(self, folder: Path, index: str) -> None:
        self.folder, self.home = folder, folder / "home"
        indexes = f"{index} {os.environ.get('UV_INDEX', '')}".strip()
        self.env = {**os.environ, "UV_INDEX": indexes, "REPROBUILD_HOME": str(self.home)}
        self.lock = "envs/pylock.torch-cpu.toml"
        self.pytorch: tuple[str, ...] = ()
        """The options by which a lock of the CPU's PyTorch is made here."""

    def start(self, *argv: str, **env: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [Path(sys.executable).with_name("reprobuild"), *argv],
            cwd=self.folder,
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def run(self, *argv: str, status: int = 0, env: Mapping[str, str] | None = None) -> tuple[str, str]:
        process = self.start(*argv, **(env or {}))
        out, err = (text.decode() for text in process.communicate())
        assert process.returncode == status, f"{argv}: {process.returncode}\n{out}\n{err}"
        assert "Traceback (most" not in err
        hold_to_schema(argv, out)
        return out, err

    def lock_torch(self) -> None:
        """Lock from the user's index; where that has CUDA builds alone, torch from PyTorch's own."""
        argv = ("lock", "--cuda", "cpu", "--torch", TORCH)
        process = self.start(*argv)
        _, err = process.communicate()
        if process.returncode == ResolveError.exit_code and b"only CUDA builds" in err:
            self.pytorch = ("--index", "pytorch")
            self.run(*argv, *self.pytorch)
        else:
            assert process.returncode == 0, err.decode()

    def torch_wheel(self) -> tuple[str, Path]:
        """The file name of the locked wheel of PyTorch, and the file, which is fetched already."""
        lock = read_lock(self.folder / self.lock)
        wheel = next(package.wheel for package in lock.python if package.name == "torch")
        return wheel.filename, Store(Home(self.home)).path(wheel.sha256)

    def build(self, **env: str) -> str:
        """Build, test and tag; return the digest."""
        digest: str = json.loads(self.run("image", self.lock, "--json", env=env)[0])["digest"]
        return digest

    def images(self, **env: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.run("images", "--json", env=env)[0])
        return found

    def forget_layers(self) -> None:
        """Make the next build do all of its work again, but for the download."""
        for name in ("layers", "oci", "roots"):
            shutil.rmtree(self.home / name, ignore_errors=True)

    def forget_torch(self) -> None:
        """Make the next build read PyTorch's wheel again, and little else."""
        for path in (self.home / "layers").iterdir():
            if "site-packages/torch/version.py" in path.read_text():
                path.unlink()
        shutil.rmtree(self.home / "roots", ignore_errors=True)
        for name in ("index.json", "index.sealed"):
            (self.home / "oci" / name).unlink(missing_ok=True)

    def leftovers(self) -> list[Path]:
        return [*(self.home / "tmp").iterdir(), *self.home.glob("**/*.partial")]


def until(event: Callable[[], object], process: subprocess.Popen[Any]) -> None:
    """Wait for an event while a process runs; one that has ended before fails the test."""
    while not event():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
