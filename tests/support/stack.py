"""The real stack of CUDA 12.1, locked, fetched and ready to build, for benchmarks."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reprobuild.engines.embedded import OciEngine
from reprobuild.fetch.scheduler import fetch
from reprobuild.fetch.store import Store
from reprobuild.host.console import Console
from reprobuild.host.ext4_spread import spread_below
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.layers.plan import plan
from reprobuild.lock.model import Lock
from reprobuild.resolve.resolver import Upgrade, resolve
from support.artifacts import link_artifacts
from support.hosts import quiet_host
from support.measuring import Watched, timed, watch
from support.resolving import request

CONSOLE = Console(quiet=True)
NAME = "reprobuild/torch:2.4.1-cu121-py311"


class Stack:
    """The lock of the default request, and a home of its own that has the files it names."""

    def __init__(self, folder: Path) -> None:
        spread_below(folder)
        self.folder = folder
        self._enter(Home(folder / "home"))
        self.lock = self.locked()
        link_artifacts(Home.from_environment().root / "store", self.store.root)
        self.fetched = timed(lambda: fetch(self.lock, self.store, CONSOLE))

    def locked(self, *packages: str, **keys: Any) -> Lock:
        """Lock the default request with further packages, and with other keys of a request."""
        wanted = request(name="torch", cuda="12.1", packages=list(packages), **keys)
        return resolve(
            wanted,
            existing=getattr(self, "lock", None),
            upgrade=Upgrade(),
            host=quiet_host(),
        )

    def run(self, *argv: str, env: Mapping[str, str] | None = None) -> Watched:
        program = str(Path(sys.executable).with_name("reprobuild"))
        own = {"REPROBUILD_HOME": str(self.home.root)}
        return watch([program, *argv], cwd=self.folder, env={**os.environ, **own, **(env or {})})

    def image(self, *options: str, lock: Lock | None = None, env: Mapping[str, str] | None = None) -> Watched:
        """Build, test and name the image of a lock with the program itself."""
        path = self.folder / "pylock.bench.toml"
        path.write_text((lock or self.lock).dump())
        return self.run("image", str(path), "--gpu", "off", *options, env=env)

    def move_out(self) -> None:
        """Take a home that has nothing, at another place of the disk than the old one, which is removed."""
        old = self.home.root
        self._enter(Home(old.with_name(f"{old.name}1")))
        shutil.rmtree(old)

    def _enter(self, home: Home) -> None:
        self.home, self.store, self.engine = home, Store(home), OciEngine(Host(home, CONSOLE))

    def forget(self, *, debian: bool) -> None:
        """Make the next build write the layers of the wheels anew, and with ``debian`` all others too."""
        keep = set() if debian else {layer.key for layer in plan(self.lock) if layer.kind != "wheels"}
        for path in self.home.folder("layers").iterdir():
            if path.stem not in keep:
                path.unlink()
        if debian:
            shutil.rmtree(self.home.folder("roots"))

    def wheels(self) -> list[Path]:
        """The wheels of the lock, largest first."""
        return [
            self.store.path(p.wheel.sha256) for p in sorted(self.lock.python, key=lambda p: -p.wheel.size)
        ]
