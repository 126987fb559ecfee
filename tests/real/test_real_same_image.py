"""The same lock gives the same image: as whoever, wherever, on however many processors, cold or warm.

Debian, pip and NumPy are real ones. PyTorch is a toy, which has nothing to say to this;
test_real_bad_days.py and test_real_cli.py have the real one.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conftest import needs
from reprobuild.fetch.scheduler import fetch
from reprobuild.fetch.store import Store
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.layers.plan import plan
from reprobuild.lock.model import Lock
from reprobuild.net.index_settings import indexes
from reprobuild.resolve.resolver import Upgrade, resolve
from support.channel import PLACEHOLDER, Channel
from support.conda_python import add_python
from support.hosts import quiet_host
from support.index import serve_index
from support.locks import LOCK
from support.resolving import LINUX, request

if TYPE_CHECKING:
    from support.people import Person  # pytest itself imports the plugin

pytest_plugins = ["support.people"]
pytestmark = pytest.mark.slow

CONSOLE = Console(quiet=True)
DRIVER = "support/build_once.py"


@dataclass(frozen=True)
class Bench:
    """A lock, and a store that has all of its artifacts."""

    lock: Lock
    folder: Path

    def give(self, person: Person, name: str) -> Path:
        """Give somebody a home with a copy of the store; return it."""
        home = person.folder / name
        shutil.copytree(self.folder / "store", home / "store")
        subprocess.run(["chown", "-R", f"{person.uid}:{person.gid}", home], check=True)
        (person.folder / "pylock.toml").write_text(self.lock.dump())
        return home

    def build(self, person: Person, home: Path, *before: str, cwd: Path | None = None, **env: str) -> str:
        """Build in a process of its own; return the digest."""
        (driver,) = [found for path in person.paths if (found := path / DRIVER).exists()]
        with person.start(
            [*before, *person.python(driver, person.folder / "pylock.toml")],
            env={"REPROBUILD_HOME": str(home), **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **({"cwd": cwd} if cwd else {}),
        ) as process:
            out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err.decode()
        return out.decode()


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    for program in ("mmdebstrap", "crun"):
        needs(program)
    folder = tmp_path_factory.mktemp("bench")
    with serve_index() as index, pytest.MonkeyPatch.context() as patch:
        index.add("torch", "2.13.0+cpu", tag=LINUX, requires=["numpy"])
        patch.setenv("UV_INDEX", index.url)
        # What pip has set up as find-links counts with pip's index only.
        patch.setenv("UV_DEFAULT_INDEX", indexes().default)
        found = resolve(
            request(cuda="cpu", torch="2.13.0"), existing=None, upgrade=Upgrade(), host=quiet_host()
        )  # fmt: skip
        fetch(found, Store(Home(folder)), CONSOLE)
    try:
        yield Bench(found, folder)
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def digest(bench: Bench, people: Callable[[str], Person]) -> str:
    """The digest that all others have to give: as root, or whoever runs this, with nothing special."""
    person = people("root" if os.geteuid() == 0 else "user")
    return bench.build(person, bench.give(person, "plain"))


def test_warm_and_partly_warm(bench: Bench, digest: str, people: Callable[[str], Person]) -> None:
    person = people("root" if os.geteuid() == 0 else "user")
    home = person.folder / "plain"
    assert bench.build(person, home) == digest
    # All but Debian's layer is built anew, half of it each time, and lies where it lay.
    blobs = {path.name for path in (home / "oci/blobs/sha256").iterdir()}
    for half in (0, 1):
        for layer in plan(bench.lock)[1:][half::2]:
            (home / "layers" / f"{layer.key}.json").unlink()
        assert bench.build(person, home) == digest
        assert {path.name for path in (home / "oci/blobs/sha256").iterdir()} == blobs


@pytest.mark.parametrize(("who", "cpus"), [("root", "one"), ("user", "all")])
def test_cold_as_anybody_anywhere(
    bench: Bench, digest: str, people: Callable[[str], Person], who: str, cpus: str
) -> None:
    person = people(who)
    home = bench.give(person, f"cold-{cpus}")
    elsewhere = person.folder / f"a folder, élsewhere {cpus}"
    elsewhere.mkdir()
    os.chown(elsewhere, person.uid, person.gid)
    first = str(min(os.sched_getaffinity(0)))
    if cpus == "one":
        before = ["taskset", "--cpu-list", first]
        env = {"TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONHASHSEED": "7", "TEST_UMASK": "077"}
    else:
        before = []
        env = {
            "TZ": "America/St_Johns",
            "LC_ALL": "tr_TR.UTF-8",
            "LANGUAGE": "tr",
            "PYTHONHASHSEED": "random",
        }
        env |= {"TEST_UMASK": "002", "SOURCE_DATE_EPOCH": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    found = bench.build(person, home, *before, cwd=elsewhere, HOME=str(elsewhere), **env)
    assert found == digest
    assert [*(home / "tmp").iterdir()] == []


def test_conda_packages_are_linked_to_the_same_bytes(
    people: Callable[[str], Person],
) -> None:
    """This machine's Python among them; as root and as an ordinary user, whatever the umask and folder."""
    needs("crun")
    folder = people("root" if os.geteuid() == 0 else "user").folder / "channel"
    channel = Channel(folder)
    add_python(channel, sys.executable)
    text = f"#!{PLACEHOLDER}/bin/python\n".encode()
    channel.add("tool", "1.0", files={"bin/tool": text, "bin/link": "tool"}, prefixed=["bin/tool"])
    modules = {"site-packages/pure/__init__.py": b"", "site-packages/pure/\u00e9.py": b"A = 1\n"}
    channel.add("pure", "1.0", files=modules, noarch=True, entry_points=["pure = pure:main"])
    rows = []
    for file in sorted(folder.rglob("*.conda")):
        name, version, build = file.stem.rsplit("-", 2)
        rows.append([name, version, build, str(file), hashlib.sha256(file.read_bytes()).hexdigest()])
    (folder / "packages.json").write_text(json.dumps(rows))
    (folder / "pylock.toml").write_text(LOCK.dump())
    subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
    found = {
        (who, umask): _linked(people(who), folder, umask)
        for who in (("root", "user") if os.geteuid() == 0 else ("user",))
        for umask in ("022", "077")
    }
    assert len({*found.values()}) == 1, found


def _linked(person: Person, folder: Path, umask: str) -> str:
    (driver,) = [found for path in person.paths if (found := path / "support/link_once.py").exists()]
    home = person.folder / f"a linker's {umask}"
    home.mkdir()
    os.chown(home, person.uid, person.gid)
    env = {"REPROBUILD_HOME": str(home), "TEST_UMASK": umask}
    command = person.python(driver, folder / "pylock.toml", folder / "packages.json", home / "scratch")
    with person.start(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err.decode()
    return out.decode()
