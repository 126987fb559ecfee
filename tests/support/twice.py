"""Programs of the tests of ``twice``, run under the recorder by a plain Python with torch, without a
container."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from itertools import count
from pathlib import Path

from reprobuild.engines.twice_mounts import environment, launched, recorder_files
from reprobuild.twice.recorded_run import RECORDS, Comparison, HowToRun, RanProgram, RecordedRun
from reprobuild.twice.runs import compare_runs

from .warm import WarmPython

PROGRAMS = Path(__file__).parents[1] / "twice" / "programs"
CLEAN = (
    *(
        "classifier",
        "transformer",
        "ranking",
        "accumulation",
        "two_optimizers",
        "prefetching",
        "lbfgs",
        "checkpointing",
    ),
    *("mixed_precision", "not_numbers", "inference", "children", "binary_output"),
)
"""What ``clean.py`` has that repeats."""
SETTINGS = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "2"}
"""Variables of every run that Python or torch reads as it starts."""


@cache
def server(python: str) -> WarmPython:
    """Return the one server of a Python."""
    found = WarmPython(python, {"PATH": os.environ["PATH"], **SETTINGS})
    atexit.register(found.close)
    return found


def recorded(
    python: Path | str, argv: Sequence[str], *, env: Mapping[str, str] | None = None, warm: bool = False
) -> RecordedRun:
    """Return what runs a Python program in an empty folder of its own.

    ``warm``: in a fork of a process that has torch already (`WarmPython`), where no time limit is set.
    """

    def run(folder: Path, settings: Mapping[str, str], seconds: float | None) -> RanProgram:
        site = folder / "site"
        site.mkdir()
        starts = str(python) if Path(python).name.startswith("python") else "python3"
        (site / "reprobuild_twice").mkdir()
        for name, content in recorder_files(settings).items():
            (site / "reprobuild_twice" / name).write_bytes(content)
        (site / "sitecustomize.py").write_text("import reprobuild_twice\n")
        (folder / RECORDS).mkdir()
        (folder / "out").mkdir()
        variables = {
            "PATH": os.environ["PATH"],
            **SETTINGS,
            "PYTHONPATH": str(site),
            "REPROBUILD_TWICE": str(folder / RECORDS),
            **environment(settings),
            **(env or {}),
        }
        written = [(folder / "out", "/out")]
        if warm and seconds is None:
            out, err = folder / "stdout", folder / "stderr"
            status = server(str(python)).run(argv, folder / "out", variables, out, err)
            return RanProgram(
                status=status, stdout=out.read_bytes(), stderr=err.read_bytes(), written=written
            )
        try:
            done = subprocess.run(
                launched([str(python), *argv], settings, starts),
                cwd=folder / "out",
                env=variables,
                capture_output=True,
                check=False,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            return RanProgram(status=None, stdout=b"", stderr=b"", written=[])
        return RanProgram(status=done.returncode, stdout=done.stdout, stderr=done.stderr, written=written)

    return run


def compared(
    python: Path | str,
    argv: Sequence[str],
    folder: Path,
    *,
    how: HowToRun | None = None,
    env: Mapping[str, str] | None = None,
    warm: bool = False,
) -> Comparison:
    """Run a program as ``reprobuild twice`` does and return what came of it."""

    return compare_runs(
        recorded(python, argv, env=env, warm=warm), how or HowToRun(), scratch_below(folder), lambda _: None
    )


def scratch_of_one_name(folder: Path) -> Callable[[], AbstractContextManager[Path]]:
    """Return what gives a new folder for each run, at the same place as it is in a container.

    Where two are kept at a time, one of them has another name.
    """

    @contextmanager
    def scratch() -> Iterator[Path]:
        run = next(each for at in count() if not (each := folder / f"run{at}").exists())
        run.mkdir()
        try:
            yield run
        finally:
            shutil.rmtree(run)

    return scratch


def scratch_below(folder: Path) -> Callable[[], AbstractContextManager[Path]]:
    """Return what gives a new folder for each run."""

    @contextmanager
    def scratch() -> Iterator[Path]:
        yield Path(tempfile.mkdtemp(dir=folder))

    return scratch
