"""root and an ordinary user, each with a Python that runs reprobuild.

A test module takes the fixture ``people`` with ``pytest_plugins = ["support.people"]``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

import reprobuild
from support.disk import remove_folder

PACKAGE = Path(reprobuild.__file__).parent
_UNUSED = shutil.ignore_patterns("__pycache__", "*mypyc*", "mypy*", "ruff*", "hypothesis*", "torch*", "pip*")


@dataclass(frozen=True, kw_only=True)
class Person:
    """Somebody who runs programs, and a folder of theirs that others can read."""

    uid: int
    gid: int
    folder: Path
    paths: Sequence[Path]
    """Where Python finds reprobuild, the tests' support modules, and what they need."""
    interpreter: Path = Path(sys.executable)

    def start(self, argv: Sequence[str | Path], **settings: Any) -> subprocess.Popen[bytes]:
        """Start a program in the person's folder, as that person, with a short environment."""
        env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(self.folder),
            "PYTHONPATH": ":".join(map(str, self.paths)),
            **settings.pop("env", {}),
        }
        if os.geteuid() != self.uid:
            settings |= {"user": self.uid, "group": self.gid, "extra_groups": []}
        settings = {"cwd": self.folder, **settings}
        return subprocess.Popen(list(map(str, argv)), env=env, **settings)

    def python(self, *argv: str | Path) -> list[str]:
        """Return the command that runs a Python of this version."""
        return [str(self.interpreter), *map(str, argv)]


@contextmanager
def _root() -> Iterator[Person]:
    if os.geteuid() != 0:
        _missing("this is not root")
    with _folder() as folder:
        yield Person(uid=0, gid=0, folder=folder, paths=[PACKAGE.parent, Path(__file__).parents[1], _site()])


@contextmanager
def _ordinary_user() -> Iterator[Person]:
    """Whoever runs the tests, or, when that is root, a user made for them, with subordinate ids."""
    with _folder() as folder:
        if os.geteuid() != 0:
            paths = [PACKAGE.parent, Path(__file__).parents[1], _site()]
            yield Person(uid=os.geteuid(), gid=os.getegid(), folder=folder, paths=paths)
            return
        # What lies in root's home is out of reach for others.
        shutil.copytree(_site(), folder / "site", ignore=_UNUSED)
        for source, target in ((PACKAGE, "src/reprobuild"), (Path(__file__).parents[1], "tests")):
            shutil.copytree(source, folder / target, ignore=shutil.ignore_patterns("__pycache__"))
        if not (PACKAGE / "templates").exists():
            shutil.copytree(PACKAGE.parents[1] / "templates", folder / "templates")
        subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
        name = f"reprobuild-test-{os.getpid()}"
        added = subprocess.run(
            ["useradd", "--no-create-home", "--home-dir", str(folder / "home"), name],
            capture_output=True,
            check=False,
        )
        if added.returncode != 0:
            _missing(f"no user can be made here: {added.stderr.decode().strip()}")
        try:
            entry = subprocess.run(["getent", "passwd", name], capture_output=True, text=True, check=True)
            uid, gid = map(int, entry.stdout.split(":")[2:4])
            home = folder / "home"
            home.mkdir()
            os.chown(home, uid, gid)
            home.chmod(0o755)
            paths = [folder / "src", folder / "tests", folder / "site"]
            yield Person(uid=uid, gid=gid, folder=home, paths=paths, interpreter=_interpreter(uid))
        finally:
            subprocess.run(["userdel", name], check=True, capture_output=True)


@pytest.fixture(scope="session")
def people() -> Iterator[Callable[[str], Person]]:
    """Call it with ``root`` or ``user``; skips where that person cannot be had, and fails in CI."""
    with ExitStack() as stack:
        found: dict[str, Person] = {}

        def person(kind: str) -> Person:
            if kind not in found:
                found[kind] = stack.enter_context(_root() if kind == "root" else _ordinary_user())
            return found[kind]

        yield person


@contextmanager
def _folder() -> Iterator[Path]:
    # Not pytest's own, which is closed to others; not /tmp, which may be small, unless it was asked for.
    folder = Path(tempfile.mkdtemp(prefix="reprobuild-test.", dir=os.environ.get("TMPDIR", "/var/tmp")))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        remove_folder(folder)


def _site() -> Path:
    return Path(pytest.__file__).parents[1]


def _interpreter(uid: int) -> Path:
    """Return a Python of this version that a user may run: this one may be kept in root's home."""
    for path in (Path(sys.executable).resolve(), Path("/usr/bin") / f"python3.{sys.version_info.minor}"):
        with suppress(OSError):
            subprocess.run([path, "-c", "import ssl"], user=uid, check=True, cwd="/")
            return path
    return _missing("no Python of this version that an ordinary user may run")


def _missing(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
