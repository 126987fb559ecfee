"""git in a folder that may be a stranger's: no program that the repository's own settings name is run.

Such a program is a filter, a file system monitor, or what fetches a missing object, and a submodule has
settings of its own, which ``git -c`` does not reach. So a repository is read through an empty one with the
index, the objects and the head of the other. The settings of the user and of the system count; of the
repository's own only those of `_COMPARING`, which name no program.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..errors import HostError
from . import process

_OF_A_REPOSITORY = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"),
    *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_PREFIX", "GIT_CEILING_DIRECTORIES", "GIT_NAMESPACE"),
)
"""Variables of a hook or of a wrapper, which would name another repository."""

_COMPARING = ("core.autocrlf", "core.eol", "core.fileMode", "core.symlinks", "core.checkStat")
"""Settings of a repository that say how its files are compared."""
_SECONDS = 50.0


def git_environment(*, fetches: bool) -> dict[str, str]:
    """Return the variables for git, without those that name a repository; ``fetches``: whether it may."""
    env = {key: value for key, value in os.environ.items() if key not in _OF_A_REPOSITORY}
    env |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8", "GIT_NO_REPLACE_OBJECTS": "1"}
    # The list outranks protocol.NAME.allow of a repository (git(1)); the other variable is git 2.45's.
    return env if fetches else env | {"GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1"}


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository, viewed from a folder in it through a git directory of our own."""

    commit: str
    """Empty: there is none yet."""
    _git: str
    _folder: Path
    _env: dict[str, str]

    def ask(self, *words: str) -> bytes | None:
        """Return what a command of git writes in the folder; None where it fails."""
        return _ask(self._git, self._folder, self._env, words)


@contextmanager
def repository_at(folder: Path) -> Iterator[Repository | None]:
    """Open the repository that a folder is in; None where it is in none, or git is not installed.

    Raises `HostError` where git does not answer in time, and so does `Repository.ask`.
    """
    git, plain = process.which("git"), git_environment(fetches=False)
    found = git and _places(git, folder, plain)
    if not git or not found:
        yield None
        return
    top, own, common = found
    commit = (_ask(git, folder, plain, ["rev-parse", "--verify", "--quiet", "HEAD"]) or b"").decode().strip()
    with tempfile.TemporaryDirectory(prefix="reprobuild-git-") as made:
        ours = Path(made)
        for name in ("objects", "refs"):
            (ours / name).mkdir()
        (ours / "HEAD").write_text(f"{commit}\n" if commit else "ref: refs/heads/none\n")
        form = _ask(git, folder, plain, ["rev-parse", "--show-object-format"]) or b"sha1"
        config = "[core]\nrepositoryFormatVersion = 1\nbare = false\n[extensions]\nobjectFormat = "
        (ours / "config").write_text(f"{config}{form.decode()}\n")
        for shared in own.glob("sharedindex.*"):  # of a split index, which names it
            (ours / shared.name).symlink_to(shared)
        env = plain | {
            "GIT_DIR": made,
            "GIT_WORK_TREE": str(top),
            "GIT_INDEX_FILE": str(own / "index"),
            "GIT_OBJECT_DIRECTORY": str(common / "objects"),
            "GIT_OPTIONAL_LOCKS": "0",
        }
        for key in _COMPARING:
            asked = ["config", "--file", str(common / "config"), "--no-includes", "--get", key]
            value = _ask(git, folder, plain, asked)
            if value is not None:
                _ask(git, folder, env, ["config", key, value.decode(errors="replace").removesuffix("\n")])
        yield Repository(commit, git, folder, env)


def _places(git: str, folder: Path, env: dict[str, str]) -> tuple[Path, Path, Path] | None:
    """Return a repository's work tree, its git directory, and the one that its work trees share."""
    found = []
    for which in ("--show-toplevel", "--git-dir", "--git-common-dir"):
        said = _ask(git, folder, env, ["rev-parse", "--path-format=absolute", which])
        if said is None:
            return None
        found.append(Path(os.fsdecode(said.removesuffix(b"\n"))))
    return found[0], found[1], found[2]


def _ask(git: str, folder: Path, env: dict[str, str], words: list[str] | tuple[str, ...]) -> bytes | None:
    command = [git, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-C", str(folder), *words]
    slow = "its disk is slow, or a file of git in it is a pipe, which never answers: look into its .git"
    with process.named_when_stopped(HostError, f"{folder}: git did not read the repository", slow=slow):
        done = process.run(command, env=env, check=False, timeout=_SECONDS)
    return done.stdout if done.returncode == 0 else None
