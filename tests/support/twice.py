"""Programs of the tests of ``twice``, run under the recorder by a plain Python with torch, without a
container."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from reprobuild import in_image
from reprobuild.twice.runs import RECORDS, Comparison, HowToRun, RanProgram, RecordedRun, compare_runs

PROGRAMS = Path(__file__).parents[1] / "twice" / "programs"


def recorded(python: Path | str, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> RecordedRun:
    """Return what runs a Python program in an empty folder of its own."""

    def run(folder: Path, settings: Mapping[str, str], seconds: float | None) -> RanProgram:
        site = folder / "site"
        site.mkdir()
        shutil.copytree(Path(in_image.__file__).parent / "twice", site / "reprobuild_twice")
        (site / "sitecustomize.py").write_text("import reprobuild_twice\n")
        (folder / RECORDS).mkdir()
        (folder / "out").mkdir()
        variables = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(site),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "OMP_NUM_THREADS": "2",
            "REPROBUILD_TWICE": str(folder / RECORDS),
            **settings,
            **(env or {}),
        }
        try:
            done = subprocess.run(
                [str(python), *argv],
                cwd=folder / "out",
                env=variables,
                capture_output=True,
                check=False,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            return RanProgram(status=None, stdout=b"", stderr=b"", written=[])
        return RanProgram(
            status=done.returncode, stdout=done.stdout, stderr=done.stderr, written=[(folder / "out", "/out")]
        )

    return run


def compared(
    python: Path | str,
    argv: Sequence[str],
    folder: Path,
    *,
    how: HowToRun | None = None,
    env: Mapping[str, str] | None = None,
) -> Comparison:
    """Run a program as ``reprobuild twice`` does and return what came of it."""

    return compare_runs(
        recorded(python, argv, env=env), how or HowToRun(), scratch_below(folder), lambda _: None
    )


def scratch_below(folder: Path) -> Callable[[], AbstractContextManager[Path]]:
    """Return what gives a new folder for each run."""

    @contextmanager
    def scratch() -> Iterator[Path]:
        yield Path(tempfile.mkdtemp(dir=folder))

    return scratch
