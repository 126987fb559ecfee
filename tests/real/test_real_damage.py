"""A home whose files are damaged, and one whose commands are killed: no wrong answer, and it heals by itself.

The kinds of files are those that a walk through a real home finds, so a new kind is tried without a word
here. By default a few are, with the seed printed, each on its smallest file. ``REPROBUILD_TEST_DAMAGE=all``
tries all on files of any size, with more commands, in any order, in a home that has also pushed an image and
built a package. ``REPROBUILD_TEST_DAMAGE=SEED`` and ``REPROBUILD_TEST_DAMAGE=all:SEED`` repeat a run;
``REPROBUILD_TEST_DAMAGE_CASES=17-24,40-68`` runs these alone: all of them take an hour on an idle machine.
What a case does depends on the seed and on its number, not on the cases before.
``REPROBUILD_TEST_KILLS=200`` is the long run of the other test.

A home with two images of a few files is damaged many times, in more ways, in the process of the test:
``REPROBUILD_TEST_EXAMPLES`` divided by 50.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from reprobuild.engines.embedded import OciEngine, unpacked, verify_unpacked
from reprobuild.errors import ReprobuildError
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.layers.clean import clean_home
from reprobuild.oci.file_tree import nothing
from reprobuild.oci.store import ImageStore
from support.artifacts import unshare
from support.bench import NAME, TORCH, Bench
from support.building import lock_for, no_context, without_debian
from support.disk import rot
from support.registry import serve_registry
from support.wheels import put, simple_wheel

pytest_plugins = ["support.shared"]
pytestmark = pytest.mark.slow

FEW = 1
"""Cases that are tried by default, each with eight commands on a real image."""

MAGIC = {b"PK\x03\x04": "zip", b"!<arch>\n": "deb", b"\x28\xb5\x2f\xfd": "zstd", b"{": "json"}
HARMS = ("flip", "cut", "empty")
MORE_HARMS = ("zeros", "longer", "gone", "exchange")
QUIET = "quiet"
"""A harm to an unpacked file that leaves its size and times as they were."""
WISH = os.environ.get("REPROBUILD_TEST_DAMAGE", "")
ALL, SEED = WISH.startswith("all"), WISH.removeprefix("all").removeprefix(":")
SMALL = int(os.environ.get("REPROBUILD_TEST_EXAMPLES", "1000")) // 50
CHOSEN = os.environ.get("REPROBUILD_TEST_DAMAGE_CASES", "")
KILLS = int(os.environ.get("REPROBUILD_TEST_KILLS", "3"))
PROGRAM = "import torch; print(torch.ones(3).sum().item())"
OTHER = "team/built:1"
COMMANDS = ("images", "run", "check", "export", "image", "clean")
MORE = ("selftest", "twice", "inspect", "verify", "bundle", "push", "rendered")
"""Commands of the long run, a few a case."""


@pytest.fixture
def chance() -> random.Random:
    seed = int(SEED) if SEED else random.SystemRandom().randrange(1 << 32)
    sys.stdout.write(f"seed {seed}\n")
    return random.Random(seed)


def kind_of(path: str, head: bytes) -> str:
    """What a file of a home is: its path without hashes, and how its content begins."""
    if path.startswith("roots/") and path.count("/") > 1:
        return "roots/*/*"
    name = re.sub(r"[0-9a-f]{2}/[0-9a-f]{64}|[0-9a-f]{16,64}", "*", path)
    return f"{name} {next((kind for start, kind in MAGIC.items() if head.startswith(start)), '')}".strip()


def kinds(home: Path) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in sorted(home.rglob("*")):
        if stat.S_ISREG(path.lstat().st_mode):
            name, head = path.relative_to(home).as_posix(), b""
            if not name.startswith("roots/"):  # of 30,000 files there, none is told by its content
                with path.open("rb") as file:
                    head = file.read(8)
            found.setdefault(kind_of(name, head), []).append(path)
    return found


def damage(path: Path, harm: str, chance: random.Random, other: Path | None = None) -> None:
    unshare(path)
    if harm == "exchange" and other is not None:
        aside = path.with_name("aside")
        for old, new in ((path, aside), (other, path), (aside, other)):
            old.rename(new)
        return
    data = path.read_bytes()
    mode = path.stat().st_mode
    path.chmod(0o644)
    if harm == "flip" and data:
        at = chance.randrange(len(data))
        with path.open("r+b") as file:
            file.seek(at)
            file.write(bytes([data[at] ^ 1 << chance.randrange(8)]))
    elif harm == "zeros" and data:
        path.write_bytes(bytes(len(data)))
    elif harm == "gone":
        path.unlink()
        return
    elif harm in ("longer", "exchange"):
        path.write_bytes(data + chance.randbytes(20))
    elif harm in ("cut", "empty"):
        os.truncate(path, 0 if harm == "empty" else len(data) // 2)
    path.chmod(stat.S_IMODE(mode))


def is_chosen(number: int) -> bool:
    """Whether a case is to be run."""
    ranges = [each.partition("-") for each in CHOSEN.split(",") if each]
    return not ranges or any(int(a) <= number <= int(b or a) for a, _, b in ranges)


def _size_if_any(path: Path) -> float:
    return path.stat().st_size or float("inf")


class Answers:
    """What the commands answer in a home, held against those that are right."""

    def __init__(self, bench: Bench, digest: str, folder: Path, registry: str = "") -> None:
        self.bench, self.digest, self.file = bench, digest, folder / "image.tar"
        self.target = f"{registry}/team/torch:1"
        self.other = next((y["digest"] for y in bench.images() if y["names"] == [OTHER]), "")
        self._times: list[str] = []
        self.before: dict[str, str] = {}
        """The first answer of a command that says the same each time."""
        self.archive = self._exported() if self._run("export", NAME, str(self.file))[0] == 0 else ""
        assert self.archive

    def wrong(self, command: str, hurt: Path) -> str:
        """Say what is wrong with the answer of a command; nothing for one that is right or names the file."""
        argv = {
            "image": ("image", self.bench.lock, "--json"),
            "images": ("images", "--json"),
            "run": ("run", NAME, "--", "python3", "-c", PROGRAM),
            "check": ("check", NAME),
            "export": ("export", NAME, str(self.file)),
            "clean": ("clean",),
            "selftest": ("selftest", NAME, "--json"),
            "twice": ("twice", NAME, "--", "python3", "-c", PROGRAM),
            "inspect": ("inspect", NAME, "--json"),
            "verify": ("verify", NAME, "--json"),
            "bundle": ("bundle", self.bench.lock, "--json", "-o", str(self.file)),
            "push": ("push", NAME, self.target, "--json"),
            "rendered": ("render", self.bench.lock, "--devcontainer", "--force", "-o", str(self.file.parent)),
        }[command]
        status, out, err = self._run(*argv)
        if "Traceback (most" in err or status == 1:
            return f"{command}: a bug: {err[-2000:]}"
        parts = [part for part in hurt.parts if len(part) > 16]
        names = [*(part.split(".")[0][:64] for part in parts), hurt.name]
        if status != 0:
            told = any(name in err for name in names) or f"no image {NAME!r}" in err
            return "" if told else f"{command}: {status}, and the file is not named: {err[-2000:]}"
        right = self._is_right(command, out)
        return "" if right else f"{command}: a wrong answer: {out[-500:]} {err[-2000:]}"

    def _is_right(self, command: str, out: str) -> bool:
        match command:
            case "image":
                return bool(json.loads(out)["digest"] == self.digest)
            case "images":
                found = json.loads(out)
                names = {self.digest: NAME, self.other: OTHER}
                return all(y["names"] in ([names.get(y["digest"])], []) for y in found)
            case "run":
                return out == "3.0\n"
            case "export":
                return self._exported() == self.archive
            case "inspect":  # the rest changes with each self-test
                told = str([json.loads(out)[key] for key in ("digest", "size", "layers", "packages")])
                return self.before.setdefault(command, told) == told
            case "verify" | "bundle":
                return self.before.setdefault(command, out) == out
            case "push":
                return bool(json.loads(out)["digest"] == self.digest)
            case "selftest":
                return bool(json.loads(out)["image"] == self.digest)
            case "rendered":
                written = (self.file.parent / ".devcontainer" / "devcontainer.json").read_text()
                return self.before.setdefault(command, written) == written
            case _:
                return True

    def _exported(self) -> str:
        with self.file.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def took(self) -> str:
        """Return what each command since the last call took, in seconds."""
        told, self._times = ", ".join(self._times), []
        return told

    def _run(self, *argv: str) -> tuple[int, str, str]:
        begin = time.monotonic()
        process = self.bench.start(*argv)
        out, err = process.communicate()
        self._times.append(f"{argv[0]} {time.monotonic() - begin:.1f}")
        return process.returncode, out.decode(), err.decode()


def build_other(bench: Bench) -> None:
    """Lock and build the second image, of which one package is built from source."""
    bench.run("lock", "--cuda", "cpu", "--torch", TORCH, "--package", "docopt==0.6.2", "--name", "built")
    bench.run("image", "built", "--tag", OTHER)


@pytest.fixture
def answers(bench: Bench, digest: str, tmp_path: Path) -> Iterator[Answers]:
    """A home with the image; for the long run also with a second one, whose package was built, and a push."""
    bench.build()
    bench.run("run", NAME, "--", "true")
    if not ALL:
        yield Answers(bench, digest, tmp_path)
        return
    build_other(bench)
    with serve_registry(tmp_path / "registry") as registry:
        answers = Answers(bench, digest, tmp_path, registry)
        said = [answers.wrong(command, tmp_path / "nothing") for command in MORE]
        assert not any(said), said
        yield answers


def test_each_kind_of_file_damaged(
    bench: Bench, answers: Answers, tmp_path: Path, chance: random.Random
) -> None:
    cases = [(kind, harm) for kind in kinds(bench.home) for harm in HARMS]
    seed = chance.random()
    chance.shuffle(cases)
    failures = []
    for number, (kind, harm) in enumerate(cases if ALL else cases[:FEW]):
        if not is_chosen(number):
            continue
        chance, begin = random.Random(f"{seed} {number}"), time.monotonic()
        if not (files := kinds(bench.home).get(kind)) and ALL:
            build_other(bench)  # an earlier `clean` removed what only this has
            files = kinds(bench.home).get(kind)
        if not files:
            failures.append(f"{kind}: no file of this kind is there any more")
            continue
        path = chance.choice(files) if ALL else min(files, key=_size_if_any)
        commands = chance.sample(COMMANDS + MORE, 4) if ALL else list(COMMANDS)
        sys.stdout.write(f"{number} of {len(cases)}: {harm} {kind}: {path}: {', '.join(commands)}\n")
        sys.stdout.flush()
        damage(path, harm, chance)
        said = [answers.wrong(command, path) for command in commands]
        healing = (
            ("image", "run", "push") if ALL else ("image", "run")
        )  # where it was pushed, a push alone knows
        again = [answers.wrong(command, tmp_path / "nothing") for command in healing]
        wrong = [f"{harm} {path.relative_to(bench.home)}: {each}" for each in said + again if each]
        sys.stdout.write("".join(f"WRONG {commands} {each}\n" for each in wrong))
        sys.stdout.write(f"{number}: {time.monotonic() - begin:.1f} s: {answers.took()}\n")
        failures += wrong
    assert not failures, "\n".join(failures)
    assert [NAME] in [image["names"] for image in bench.images()]


def test_each_kind_of_file_of_a_small_home_damaged(
    tmp_path: Path, chance: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_debian(monkeypatch)
    host = Host(Home(tmp_path / "home"), Console(quiet=True))
    store = ImageStore(host)

    def build() -> dict[str, str]:
        made = {}
        for name in ("team/one:1", "team/two:1"):
            wheels = [put(host.home, each, simple_wheel(each)) for each in ("torch", name[5:8])]
            made[name] = OciEngine(host).build(lock_for(host.home, wheels), no_context)
            store.name(made[name], name)
        return made

    def run(name: str) -> object:
        with unpacked(host, store, store.find(name).digest) as folders:
            files = sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())
            return [path.read_bytes() for path in files]

    def images() -> object:
        return sorted(name for image in store.images() for name in image.names)

    def check(name: str) -> str:
        tree = store.tree(store.find(name).digest, name, nothing)
        verify_unpacked(host, store, store.find(name).digest, tree.files)
        return tree.digest

    answers: dict[str, Callable[[], object]] = {
        "run": lambda: run("team/one:1"),
        "check": lambda: [check(name) for name in ("team/one:1", "team/two:1")],
        "images": images,
    }
    steps: dict[str, Callable[[], object]] = {
        "clean": lambda: clean_home(host, everything=False),
        "remove": lambda: store.remove("team/one:1"),
    }
    digests = build()
    right = {name: ask() for name, ask in answers.items()}
    for number in range(SMALL):
        found = kinds(host.home.root)
        kind = chance.choice([*sorted(found), QUIET])
        files = found["roots/*/*" if kind == QUIET else kind]
        path, other = chance.choice(files), chance.choice(files)
        harm = QUIET if kind == QUIET else chance.choice(HARMS + MORE_HARMS)
        case = f"{number}: {harm} {path}"
        if harm == QUIET and path.stat().st_size:
            rot(path)
            asked = ["check", "run"]  # neither size nor time tells, so a run alone does not find it
        else:
            damage(path, harm, chance, other if other != path else None)
            asked = chance.sample([*answers, *steps], 3)
        for name in asked:
            said, answer = "", None
            try:
                answer = {**answers, **steps}[name]()
            except ReprobuildError as error:
                said = error.message
            parts = [part[:12] for each in (path, other) for part in each.parts if len(part) > 16]
            told = any(each in said for each in ("no image", path.name, other.name, *parts))
            lost = name == "images" and set(cast("list[str]", answer)) < digests.keys()
            is_right = name in steps or answer == right[name] or lost
            assert told if said else is_right, f"{case}: {name}: {said}"
        assert build() == digests, case
        assert {name: ask() for name, ask in answers.items()} == right, case


def test_killed_again_and_again(bench: Bench, digest: str, chance: random.Random) -> None:
    """Builds that have some work to do, and clean-ups, each killed at some moment."""
    bench.build()
    for number in range(KILLS):
        if number % 2 == 0:
            records = sorted((bench.home / "layers").glob("*.json"), key=lambda each: each.stat().st_size)
            for record in chance.sample(records[: len(records) * 2 // 3], min(2, len(records) // 2)):
                damage(record, chance.choice(HARMS), chance)
        process = bench.start(*(("clean",) if number % 2 else ("image", bench.lock)))
        try:
            process.communicate(timeout=chance.uniform(0.1, 1 if number % 2 else 4))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        assert {image["digest"] for image in bench.images()} <= {digest}, number
    assert bench.build() == digest
    assert bench.leftovers() == []
