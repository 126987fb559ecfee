"""Dependency files of real projects lock, or stop with a message that helps.

The files are not ours to copy; `real_files.txt` says where they are from: repository, commit, path. Each
repository is fetched by git at its commit, from ``REPROBUILD_REAL_FILES_FROM`` (by default GitHub), into the
folder that ``REPROBUILD_REAL_FILES`` names, where a checkout called ``owner+name`` is taken as it is; without
one, into a folder of the test's. The indexes are those of the machine.

``REPROBUILD_REAL_FILES_MIRROR`` names a folder of repositories, ``owner+name/repo``: git asks a server on
loopback for those, where a file names them by their address on GitHub.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.git_server import git_server

FOLDER = os.environ.get("REPROBUILD_REAL_FILES", "")
FROM = os.environ.get("REPROBUILD_REAL_FILES_FROM", "https://github.com")
MIRROR = os.environ.get("REPROBUILD_REAL_FILES_MIRROR", "")
ONLY = os.environ.get("REPROBUILD_REAL_FILES_ONLY", "")
"""A regular expression: the lines of the list that are tried."""
LIST = Path(__file__).with_name("real_files.txt")
SHARE = 0.75
"""Of all files that lock, of those whose hosts this machine reaches."""
SECONDS = 600.0
MOST_LINES = 20 + 12
"""Of a message: the reasons of the resolver, and what is said around them."""

MOST_HINTS = 2
"""Times that what a message says is followed, word for word."""

_GIVEN = re.compile(r"(?:\bgive|: |^) ?((?:--[a-z][a-z-]* (?:'[^']*'|[^\s,]+) ?)+)")
_OPTION = re.compile(r"(--[a-z][a-z-]*) ('[^']*'|[^\s,]+)")
_ONE = {"--cuda", "--from", "--python", "--torch", "--index"}
"""Options that a command has but once; the last one counts."""
_UNREACHED = re.compile(
    r"git cannot read it|cannot be reached|channel cannot be read|could not fetch a standalone build"
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one file."""

    status: int | None
    """None: not within the time."""
    said: str
    options: list[str]
    """What was given on the command line."""
    followed: int
    """How many hints were followed to get there."""
    first: str
    """What was said without any of them."""
    seconds: float

    @property
    def judged(self) -> bool:
        """Whether this machine reaches what the file names."""
        return not _UNREACHED.search(self.said)

    @property
    def lines(self) -> list[str]:
        """The error with its hint, without the steps before it."""
        return self.said.partition("reprobuild: ")[2].splitlines()

    @property
    def reason(self) -> str:
        """The error with its hint in one line."""
        return " / ".join(self.lines)[:600]


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


def followed(said: str, options: list[str]) -> list[str]:
    """Return a command's options with those that a message says to give, the first of each line.

    A line that begins with "or" is another way, and counts where the lines before it have none.
    """
    pairs = list(zip(options[::2], options[1::2], strict=True))
    hint = said.rpartition("hint:")[2] if "hint:" in said else ""
    given: set[str] = set()
    for line in hint.splitlines():
        if given and line.strip().startswith("or "):
            continue
        found = _GIVEN.search(line.strip())
        for name, quoted in _OPTION.findall(found[1]) if found is not None else ():
            value = quoted.strip("'").rstrip(";.")
            if name in _ONE and name in given:
                continue  # the first of several ways
            given.add(name)
            pairs = [each for each in pairs if each[0] != name or name not in _ONE]
            if (name, value) not in pairs:
                pairs.append((name, value))
    return [word for pair in pairs for word in pair]


def locked(project: Path, file: str) -> Outcome:
    """Lock one file, with the options that the messages name."""
    start = time.monotonic()
    options = ["--from", file]
    first = ""
    for count in range(MOST_HINTS + 1):
        command = [sys.executable, "-m", "reprobuild", "lock", *options, "--name", "x"]
        try:
            done = subprocess.run(
                command, cwd=project, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired as stopped:
            said = (stopped.stderr or b"").decode("utf-8", "replace")
            return Outcome(None, said, options, count, first, time.monotonic() - start)
        first = first or done.stderr
        more = followed(done.stderr, options)
        if done.returncode == 0 or more == options or count == MOST_HINTS:
            break
        options = more
    return Outcome(done.returncode, done.stderr, options, count, first, time.monotonic() - start)


@pytest.fixture
def _mirrored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let git take from the mirror what it has; the rest from where it is named."""
    if not MIRROR:
        yield
        return
    with git_server(Path(MIRROR)) as server:
        lines = ["[safe]\n\tdirectory = *\n"]
        for folder in sorted(Path(MIRROR).glob("*+*/repo")):
            owner, name = folder.parent.name.split("+", 1)
            lines.append(f'[url "{server.url}/{owner}+{name}/repo"]\n')
            lines += [f"\tinsteadOf = {FROM}/{owner}/{name}{end}\n" for end in ("", ".git")]
        settings = tmp_path / "gitconfig"
        settings.write_text("".join(lines))
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
        # The server's own git.
        monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
        monkeypatch.setenv("GIT_CONFIG_KEY_0", "safe.directory")
        monkeypatch.setenv("GIT_CONFIG_VALUE_0", "*")
        yield


@pytest.mark.usefixtures("_mirrored")
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
        if not (project / ".git").exists():  # all of a checkout is tracked, ignored or not
            subprocess.run("git init -q && git add -A -f", shell=True, cwd=project, check=True)
        try:
            outcome = locked(project, file)
        finally:
            shutil.rmtree(project)
        state = "locked" if outcome.status == 0 else f"status {outcome.status}"
        why = outcome.reason if outcome.status else outcome.said[-300:] if outcome.status is None else ""
        head = f"{state:9} {outcome.seconds:4.0f} s  {repository}: {file}, hints {outcome.followed}"
        print(f"{head} ({' '.join(outcome.options)})  {why}".rstrip(), flush=True)
        return outcome

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(one, range(len(entries))))
    good = sum(outcome.status == 0 for outcome in outcomes)
    at_once = sum(outcome.status == 0 and not outcome.followed for outcome in outcomes)
    loosened = sum(outcome.status == 0 and "--loosen" in outcome.options for outcome in outcomes)
    judged = sum(outcome.judged for outcome in outcomes)
    print(
        f"{len(outcomes)} files, {judged} of which name only what this machine reaches: {at_once} lock at "
        f"once, {good} after at most {MOST_HINTS} hints, {loosened} of these with --loosen"
    )
    for outcome in outcomes:
        # What stops says why, and what to do.
        assert outcome.status in (0, 3, 5, 6, 8), outcome.said
        assert outcome.status == 0 or ("hint:" in outcome.said and "Traceback" not in outcome.said)
        assert len(outcome.lines) <= MOST_LINES, outcome.said
    assert good >= SHARE * judged
