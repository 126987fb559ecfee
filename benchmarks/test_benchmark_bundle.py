"""How long a bundle of a CPU image takes to write and to read, beside `tar` with the same files.

Each run ends once the disk has all of it. The first bundle of a home also fetches and resolves what
reprobuild itself needs; the later ones ask the mirrors whether anything has changed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from reprobuild.bundle.read import read_head, take
from reprobuild.host.home import Home
from support.bench import Bench
from support.hosts import quiet_host
from support.measuring import Printer, Watched, medians, timed, watch

pytest_plugins = ["support.shared"]

ROUNDS = 3


@pytest.fixture
def files(bench: Bench) -> Iterator[Path]:
    """A folder for what is written, which goes at the end."""
    folder = bench.folder / "files"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def test_write_and_read_beside_tar(bench: Bench, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    say = Printer(capsys, "bundle of a CPU image")
    times: dict[str, list[float]] = defaultdict(list)
    bundle, laid_out, copy = files / "a.tar", files / "laid-out", files / "copy.tar"
    program = str(Path(sys.executable).with_name("reprobuild"))
    argv = [program, "bundle", bench.lock, "-o", str(bundle)]

    def write() -> None:
        done.append(watch(argv, cwd=bench.folder, env=bench.env))

    def run(*command: str | Path) -> None:
        subprocess.run(command, check=True)
        os.sync()

    def read(home: Path) -> None:
        head = read_head(bundle)
        locks = [lock for platforms in head.locks.values() for lock in platforms]
        take(head, locks, quiet_host(Home(home)))
        os.sync()

    done: list[Watched] = []
    os.sync()
    say(f"  the first one, with what is fetched and resolved: {timed(write):.2f} s")
    laid_out.mkdir()
    run("tar", "-C", laid_out, "-xf", bundle)
    say(f"  {bundle.stat().st_size / 1e6:.1f} MB in {sum(1 for _ in laid_out.rglob('*'))} files and folders")
    for number in range(ROUNDS):
        times["bundle LOCK -o FILE"].append(timed(write))
        times["tar -c of the same files, and sync"].append(
            timed(partial(run, "tar", "-C", laid_out, "-cf", copy, "."))
        )
        times["read into an empty store, and sync"].append(timed(partial(read, files / f"home{number}")))
        (files / f"x{number}").mkdir()
        times["tar -x, and sync"].append(timed(partial(run, "tar", "-C", files / f"x{number}", "-xf", copy)))
        for name in (f"home{number}", f"x{number}"):
            shutil.rmtree(files / name)
        copy.unlink()
    say.series(times)
    for phase in done[-1].phases:
        say(f"  the last one written: {phase.seconds:6.2f} s  {phase.own / 1e6:4.0f} MB  {phase.title}")
    middle = list(medians(times).values())
    say(f"  write {middle[0] / middle[1]:.2f} of tar's time, read {middle[2] / middle[3]:.2f}")
