"""A sandbox for each runtime and each kind of user: fixtures.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conftest import needs
from support.small_root import make_folder

if TYPE_CHECKING:
    from support.people import Person  # pytest itself imports the plugin


DRIVER = "support/sandboxed.py"


@dataclass(frozen=True)
class Box:
    """A runtime, a person, and a root to run programs in."""

    runtime: str
    person: Person
    root: Path

    def command(self, *argv: str, **told: Any) -> list[str]:
        layers = [str(self.root), *told.pop("layers", ())]
        text = json.dumps({"runtime": self.runtime, "layers": layers, "argv": argv, **told})
        (driver,) = [found for path in self.person.paths if (found := path / DRIVER).exists()]
        return self.person.python(driver, text)

    def run(self, *argv: str, before: Sequence[str] = (), **told: Any) -> dict[str, Any]:
        command = [*before, *self.command(*argv, **told)]
        with self.person.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err.decode()
        found: dict[str, Any] = json.loads(out)
        return found

    def sh(self, script: str, **told: Any) -> str:
        """Run a script that has to work; return what it says."""
        found = self.run("bash", "-c", script, **told)
        assert found.get("status") == 0, found
        said: str = found["out"]
        return said

    def folder(self, name: str) -> Path:
        """Make a folder that belongs to the person."""
        path = self.person.folder / f"{name}-{uuid.uuid4().hex[:8]}"
        path.mkdir()
        os.chown(path, self.person.uid, self.person.gid)
        return path

    def leftovers(self) -> list[str]:
        return [path.name for path in self.person.folder.glob("bundle.*")]


@pytest.fixture(scope="module", params=["root", "user"])
def person(request: pytest.FixtureRequest, people: Callable[[str], Person]) -> Person:
    return people(request.param)


RUNTIMES = [pytest.param("crun", marks=pytest.mark.core), pytest.param("runc", marks=pytest.mark.engines)]


@pytest.fixture(scope="module", params=RUNTIMES)
def box(request: pytest.FixtureRequest, person: Person) -> Box:
    needs(request.param)
    # A name of its own: several modules of a session have the same person.
    root = Path(tempfile.mkdtemp(prefix=f"root-{request.param}.", dir=person.folder))
    root.chmod(0o755)
    make_folder(root)
    # As an unpacked layer: of whoever unpacked it.
    subprocess.run(["chown", "-R", f"{person.uid}:{person.gid}", root], check=True)
    return Box(request.param, person, root)


def held(group: Path) -> bool:
    """Whether somebody has locked a folder; one that has just gone is nobody's."""
    try:
        descriptor = os.open(group, os.O_RDONLY)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)
