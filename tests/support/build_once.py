"""Run as a program: builds the image of a lock whose artifacts are in the store, and writes its digest."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from reprobuild.engines.embedded import OciEngine
from reprobuild.fetch.scheduler import fetch
from reprobuild.fetch.store import Store
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.pipeline.workspace import read_lock


def main() -> None:
    lock, home, console = read_lock(Path(sys.argv[1])), Home.from_environment(), Console(quiet=True)
    if umask := os.environ.get("TEST_UMASK"):
        os.umask(int(umask, 8))
    fetch(lock, Store(home), console)
    sys.stdout.write(OciEngine(Host(home, console)).build(lock, lambda _: None))


if __name__ == "__main__":
    main()
