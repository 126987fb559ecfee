"""Dependency files of real projects lock, or stop with a message that helps.

The files are not ours to copy; `real_files.txt` says where they are from: repository, commit, path. Each
repository is fetched by git at its commit, from ``REPROBUILD_REAL_FILES_FROM`` (by default GitHub), into the
folder that ``REPROBUILD_REAL_FILES`` names, where a checkout called ``owner+name`` is taken as it is; without
one, into a folder of the test's. The indexes are those of the machine.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.benchmark

FOLDER = os.environ.get("REPROBUILD_REAL_FILES", "")
FROM = os.environ.get("REPROBUILD_REAL_FILES_FROM", "https://github.com")
ONLY = os.environ.get("REPROBUILD_REAL_FILES_ONLY", "")
"""A regular expression: the lines of the list that are tried."""
LIST = Path(__file__).with_name("real_files.txt")
SHARE = 0.75
"""Of all files that lock, of those whose hosts this machine reaches."""
SECONDS = 600.0
MOST_LINES = 20 + 12
"""Of a message: the reasons of the resolver, and what is said around them."""

_OTHER_CUDA = re.compile(r"is built for CUDA ([0-9.]+)|resolved for CUDA ([0-9.]+)|give --cuda ([0-9.]+|cpu)")
_BUILD = re.compile(r"give ((?:--build-(?:apt|torch) [\w.+-]+ ?)+), or")
MOST_TRIES = 6
_UNREACHED = re.compile(r"git cannot read it|cannot be reached|channel cannot be read")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one file."""

    status: int | None
    """None: not within the time."""
    said: str
    options: list[str]
    """The CUDA, and what was given beside it."""
    seconds: float

    @property
    def judged(self) -> bool:
        """Whether this machine reaches what the file names."""
        return not _UNREACHED.search(self.said)

    @property
    def reason(self) -> str:
        """The error with its hint in one line."""
        return " / ".join(self.said.partition("reprobuild: ")[2].split("\n"))[:600]


def checkout(repository: str, commit: str, folder: Path) -> Path:
    """Return a checkout of a repository at a commit, which is fetched if it is not there."""
    target = folder / repository.replace("/", "+")
    if not target.exists():
        part = target.with_name(f"{target.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        for words in (
            ["init", "--quiet", str(part)],
            ["-C", str(part), "fetch", "--quiet", "--depth=1", f"{FROM}/{repository}", commit],
            ["-C", str(part), "checkout", "--quiet", "FETCH_HEAD"],
        ):
            subprocess.run(["git", *words], check=True, timeout=900)
        part.rename(target)
    return target


def locked(project: Path, file: str) -> Outcome:
    """Lock one file, with the options that the messages name: the CUDA, what builds need."""
    tried: set[tuple[str, ...]] = set()
    cuda, start = "12.8", time.monotonic()
    more: list[str] = []
    while True:
        tried.add((cuda, *more))
        command = [sys.executable, "-m", "reprobuild", "lock", "--from", file, "--cuda", cuda, "--name", "x"]
        command += more
        try:
            done = subprocess.run(
                command, cwd=project, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired as stopped:
            said = (stopped.stderr or b"").decode("utf-8", "replace")
            return Outcome(None, said, [cuda, *more], time.monotonic() - start)
        other = _OTHER_CUDA.search(done.stderr)
        wanted = next(filter(None, other.groups()), cuda) if other is not None else cuda
        needs = [word for found in _BUILD.finditer(done.stderr) for word in found[1].split()]
        if done.returncode == 0 or (wanted, *more, *needs) in tried or len(tried) > MOST_TRIES:
            return Outcome(done.returncode, done.stderr, [cuda, *more], time.monotonic() - start)
        cuda, more = wanted, [*more, *needs]


def test_three_of_four_real_files_lock(tmp_path: Path) -> None:
    lines = [line for line in LIST.read_text().splitlines() if not line.startswith("#")]
    entries = [line.split(" ", 2) for line in lines if re.search(ONLY, line)]
    folder = Path(FOLDER) if FOLDER else tmp_path / "checkouts"
    folder.mkdir(exist_ok=True)
    for repository, commit, _ in entries:
        checkout(repository, commit, folder)

    def one(number: int) -> Outcome:
        repository, commit, file = entries[number]
        project = tmp_path / str(number) / "project"
        shutil.copytree(checkout(repository, commit, folder), project, symlinks=True)
        if not (project / ".git").exists():  # a folder is what git tracks of it
            subprocess.run("git init -q && git add -A", shell=True, cwd=project, check=True)
        try:
            outcome = locked(project, file)
        finally:
            shutil.rmtree(project)
        state = "locked" if outcome.status == 0 else f"status {outcome.status}"
        why = outcome.reason if outcome.status else outcome.said[-300:] if outcome.status is None else ""
        head = f"{state:9} {outcome.seconds:4.0f} s  {repository}: {file} (CUDA {' '.join(outcome.options)})"
        print(f"{head}  {why}".rstrip(), flush=True)
        return outcome

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(one, range(len(entries))))
    good = sum(outcome.status == 0 for outcome in outcomes)
    judged = sum(outcome.judged for outcome in outcomes)
    print(f"{good} of {len(outcomes)} lock; this machine reaches what {judged} of them name")
    for outcome in outcomes:
        # What stops says why, and what to do.
        assert outcome.status in (0, 3, 5, 6, 8), outcome.said
        assert outcome.status == 0 or ("hint:" in outcome.said and "Traceback" not in outcome.said)
        assert outcome.said.count("\n") <= MOST_LINES, outcome.said
    assert good >= SHARE * judged
