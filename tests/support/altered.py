"""A real image with something changed in it: one more layer on top of its own, and other variables.

The layers of an image are folders that the kernel stacks, so a changed image costs no more than its change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reprobuild.engines.embedded import unpacked
from reprobuild.host import process, sandbox
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.oci.store import ImageStore


@dataclass
class AlteredImage:
    """A `selftest.run.Runner` of an image with files added or replaced, and variables set or (None) unset."""

    home: Home
    digest: str
    folder: Path
    """Holds the upper layer, ``layer``; empty at first."""
    env: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def layer(self) -> Path:
        (self.folder / "layer").mkdir(exist_ok=True)
        return self.folder / "layer"

    def write(self, path: str, text: str) -> None:
        """Put a file into the image at an absolute path."""
        target = self.layer / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def read(self, path: str) -> str:
        """Return the text of a file of the image."""
        with unpacked(Host(self.home, Console(quiet=True)), self._images, self.digest) as layers:
            for layer in reversed(layers):
                if (layer / path.lstrip("/")).is_file():
                    return (layer / path.lstrip("/")).read_text()
        raise FileNotFoundError(path)

    def run(self, argv: Sequence[str], *, timeout: float, gpu: bool) -> process.Completed:
        config = self._images.config(self.digest)["config"]
        env = dict(line.split("=", 1) for line in config["Env"])
        for name, value in self.env.items():
            env.pop(name, None)
            if value is not None:
                env[name] = value
        task = sandbox.Task(argv=argv, env=env, cwd=config["WorkingDir"])
        with (
            unpacked(Host(self.home, Console(quiet=True)), self._images, self.digest) as layers,
            self.home.scratch("altered") as scratch,
        ):
            return sandbox.run(scratch, [*layers, self.layer], task, timeout=timeout)

    def gpu_missing(self) -> str | None:
        return "the image is tested on the CPU"

    def machine(self) -> str | None:
        return None

    @property
    def _images(self) -> ImageStore:
        return ImageStore(Host(self.home, Console(quiet=True)))
