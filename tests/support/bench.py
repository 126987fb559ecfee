"""A folder in which the installed program builds the smallest real image: PyTorch for the CPU."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reprobuild.errors import SelfTestError

TORCH = "2.13.0"
NAME = "reprobuild/torch:2.13.0-cpu-py311"


class Bench:
    """A folder with a locked request for PyTorch on the CPU, and a home."""

    def __init__(self, folder: Path, index: str) -> None:
        self.folder, self.home = folder, folder / "home"
        self.env = {**os.environ, "UV_INDEX": index, "REPROBUILD_HOME": str(self.home)}
        self.lock = "envs/pylock.torch-cpu.toml"

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
        assert "Traceback (most" not in err or status == SelfTestError.exit_code
        return out, err

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
        (self.home / "oci/index.json").unlink()

    def leftovers(self) -> list[Path]:
        return [*(self.home / "tmp").iterdir(), *self.home.glob("**/*.partial")]


def cpu_wheel(folder: Path) -> Path:
    """Get a CPU build of PyTorch by pip, as the user has it set up; skip where that gives a CUDA build."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*pip, "--dest", str(folder), f"torch=={TORCH}"], check=True, stdout=subprocess.DEVNULL)
    (wheel,) = folder.glob("torch-*.whl")
    if wheel.stat().st_size > 400e6:
        reason = (
            "pip is set up for CUDA builds of torch here; PIP_INDEX_URL can name an index with CPU builds"
        )
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return wheel
