"""The real CUDA 12.1 image, made by reprobuild and by what people use, side by side, in turn, in one run.

Each contender goes through the same five cases; then its image is loaded, checked, pushed and pulled. Ours
has Debian made, every layer hashed, and the self-test run in the time that is told; the others begin with a
Debian that has Python, as ``FROM python`` would be, and test nothing.

A round takes an hour and a half. ``REPROBUILD_BENCHMARK_ROUNDS`` says how many (by default 3),
``REPROBUILD_BENCHMARK_ONLY`` which contenders, as a regular expression, ``REPROBUILD_BENCHMARK_CASES`` which
of the cases, and ``REPROBUILD_BENCHMARK_OUT`` where ``side-by-side.json`` and ``.svg`` go. Figures that an
earlier run has left there count too, so that it can be done in parts.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import pytest

from reprobuild.host.ext4_spread import spread_below
from reprobuild.host.host import Host
from reprobuild.layers.builder import write_system_tar
from reprobuild.lock.model import Lock
from reprobuild.net.index_settings import ca_bundle, indexes
from support.bars import Bars, drawn
from support.engines import Site, new_docker, old_docker, podman
from support.measuring import Printer, medians, timed
from support.registry import serve_registry
from support.stack import CONSOLE, NAME, Stack

pytest_plugins = ["support.shared"]

ROUNDS = int(os.environ.get("REPROBUILD_BENCHMARK_ROUNDS", "3"))
ONLY = os.environ.get("REPROBUILD_BENCHMARK_ONLY", "")
OUT = os.environ.get("REPROBUILD_BENCHMARK_OUT", "")

Rows = dict[str, dict[str, list[float]]]
"""What was done → by whom → the seconds of each time."""

COLD, WHEELS, AGAIN, SMALL, TORCH = (
    "nothing here",
    "wheels there",
    "nothing changed",
    "one small package more",
    "another torch",
)
CASES = [
    case
    for case in (COLD, WHEELS, AGAIN, SMALL, TORCH)
    if case == COLD or re.search(os.environ.get("REPROBUILD_BENCHMARK_CASES", ""), case)
]
ENGINES = ("docker-20.10", "docker-26.1", "podman")
PLAIN = "plain:1"

# As people write it who keep pins alone.
DOCKERFILE = """\
FROM scratch
ADD debian.tar /
COPY {tool} ca.pem /
COPY requirements.txt /
ARG PIP_INDEX_URL
ARG UV_DEFAULT_INDEX
ARG ROUND
ENV PIP_CERT=/ca.pem SSL_CERT_FILE=/ca.pem XDG_CACHE_HOME=/cache
RUN --mount=type=cache,target=/cache {install}
"""
PIP = (
    "python3.11 -m venv --without-pip /opt/venv"
    " && /opt/venv/bin/python $(echo /pip-*.whl)/pip install -r requirements.txt"
)
UV = (
    "/uv venv --quiet --python python3.11 /opt/venv"
    " && /uv pip install --quiet --python /opt/venv --link-mode copy --compile-bytecode"
    " -r requirements.txt"
)


@dataclass(frozen=True, slots=True)
class Locks:
    """The default request, the same with a small package more, and with another torch."""

    first: Lock
    small: Lock
    torch: Lock

    def of(self, case: str) -> Lock:
        return {SMALL: self.small, TORCH: self.torch}.get(case, self.first)


class Contender(Protocol):
    """A way to an image."""

    @property
    def title(self) -> str: ...

    def make(self, case: str) -> float:
        """Bring about what a case begins with, and return the seconds to the image."""
        ...

    def handed_on(self, place: str, folder: Path) -> Iterator[tuple[str, float]]:
        """Yield the seconds of what is done with the image then."""
        ...


@dataclass(slots=True)
class Ours:
    """``reprobuild image``, by its own engine or handed to another."""

    stack: Stack
    locks: Locks
    site: Site | None
    title: str

    def make(self, case: str) -> float:
        if case == COLD:
            self.stack.move_out()
        elif case == WHEELS:
            self.stack.forget(debian=False)
        if self.site is not None and case in (COLD, WHEELS):
            emptied(self.site)
        changed = ["--tag", f"changed:{CASES.index(case)}"] if case in (SMALL, TORCH) else []
        engine, env = ([], {}) if self.site is None else (["--engine", self.site.kind], self.site.env)
        settled()
        return self.stack.image(*engine, *changed, lock=self.locks.of(case), env=env).seconds

    def handed_on(self, place: str, folder: Path) -> Iterator[tuple[str, float]]:
        """Yield the seconds of a check in the engine, a load into it, a push, and a pull."""
        if self.site is None:
            return
        env, kind = self.site.env, self.site.kind
        yield "check", self.stack.run("check", f"{kind}:{NAME}", "--gpu", "off", env=env).seconds
        emptied(self.site)
        self.stack.image(lock=self.locks.first)  # what an engine has tested has no name in the embedded store
        settled()
        yield "load", self.stack.run("load", NAME, "--into", kind, env=env).seconds
        emptied(self.site)
        with registry(folder) as host:
            name = f"{host}/team/torch:1"
            yield "push", self.stack.run("push", NAME, name).seconds
            if place == "docker-20.10":  # it pulls no zstd, but its containerd does
                yield "pull by ctr", pulled_by_ctr(self.site, name)
                name = f"{host}/team/torch:gzip"
                yield "push in gzip", self.stack.run("push", NAME, name, "--compression", "gzip").seconds
            yield "pull", pulled(self.site, name)


@dataclass(slots=True)
class Plain:
    """A Dockerfile with pins, built by an engine or by buildah."""

    locks: Locks
    site: Site
    title: str
    folder: Path
    command: tuple[str, ...]
    handed: bool
    round: int = 0

    def make(self, case: str) -> float:
        if case == COLD:
            emptied(self.site)
            shutil.rmtree(self.temporary, ignore_errors=True)
        if case == WHEELS:
            self.round += 1  # the environment is made anew, from the cache that is mounted
        pins = [f"{package.name}=={package.version}\n" for package in self.locks.of(case).python]
        (self.folder / "requirements.txt").write_text("".join(pins))
        settled()
        return timed(self._build)

    @property
    def temporary(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.tmp")

    def handed_on(self, place: str, folder: Path) -> Iterator[tuple[str, float]]:
        """Yield the seconds of the same by the engine's own commands; there is nothing to check it with."""
        if not self.handed:
            return
        archive = folder / "plain.tar"
        with registry(folder) as host:
            name = f"{host}/team/plain:1"
            self.site.call("tag", PLAIN, name)
            insecure = ["--tls-verify=false"] if self.site.kind == "podman" else []
            yield "push", timed(partial(self.site.call, "push", *insecure, name))
            self.site.call("save", "--output", str(archive), PLAIN)
            emptied(self.site)
            yield "load", timed(partial(self.site.call, "load", "--input", str(archive)))
            archive.unlink()
            emptied(self.site)
            yield "pull", pulled(self.site, name)
            if place == "docker-20.10":
                yield "pull by ctr", pulled_by_ctr(self.site, name)

    def _build(self) -> None:
        # The addresses go by the environment: an argument could be read by everybody.
        index = indexes().default
        self.temporary.mkdir(exist_ok=True)
        env = {**os.environ, **self.site.env, "PIP_INDEX_URL": index, "UV_DEFAULT_INDEX": index}
        env["TMPDIR"] = str(self.temporary)  # buildah keeps what cache mounts have there
        if not self.site.keeps_time:  # the Docker of Debian 12, whose own command has BuildKit
            env |= {"PATH": f"/usr/bin:{env['PATH']}", "DOCKER_BUILDKIT": "1"}
        given = [f"--build-arg={name}" for name in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX")]
        given += [f"--build-arg=ROUND={self.round}", "--network", "host", "--tag", PLAIN]
        ran([*self.command, *given, str(self.folder)], env)


def test_side_by_side(
    stack: Stack, request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    say = Printer(capsys, f"CUDA 12.1 side by side, {ROUNDS} rounds")
    spread_below(tmp_path)  # what one has deleted is not to slow the next
    rows: Rows = defaultdict(lambda: defaultdict(list))
    earlier = left(Path(OUT)) if OUT else {}
    locks = Locks(stack.lock, stack.locked("humanize"), stack.locked(torch="2.4.0"))

    def noted(row: str, who: str, seconds: float) -> None:
        rows[row][who].append(seconds)
        say(f"  {seconds:7.1f} s  {row}: {who}")

    for number in range(ROUNDS):
        for place in filter(asked, ("embedded", *ENGINES)):
            folder = tmp_path / f"{place}-{number}"
            with started(place, folder, request) as site:
                for one in contenders(place, site, stack, locks, folder.with_name(f"plain-{folder.name}")):
                    for case in CASES:
                        noted(case, one.title, one.make(case))
                    for row, seconds in one.handed_on(place, tmp_path):
                        noted(row, one.title, seconds)
                    if OUT:
                        written(rows, earlier, Path(OUT))
    for row, series in rows.items():
        say(row)
        say.series(series)


def asked(place: str) -> Mapping[str, str]:
    """Return who builds at a place, of those that are asked for, with the tool of each; ours has none."""
    if place == "embedded":
        found = {"reprobuild": ""}
    else:
        builder = "buildah" if place == "podman" else place
        found = {
            f"reprobuild --engine, {place}": "",
            f"Dockerfile with uv, {place}": "uv",
            f"Dockerfile with pip, {builder}": "pip",
        }
    return {title: tool for title, tool in found.items() if re.search(ONLY, title)}


def contenders(
    place: str, site: Site | None, stack: Stack, locks: Locks, folder: Path
) -> Iterator[Contender]:
    """Yield who builds at a place, each ready to begin with nothing."""
    for title, tool in asked(place).items():
        if not tool:
            yield Ours(stack, locks, site, title)
            continue
        assert site is not None
        target = folder.with_name(f"{folder.name}-{tool}")
        plain_folder(stack, target, tool, PIP if tool == "pip" else UV)
        command = ("buildah", "build", "--layers") if title.endswith("buildah") else (site.kind, "build")
        handed = tool == "uv"  # what pip installs is as large, so an engine takes as long with it
        plain = Plain(locks, site, title, target, command, handed)
        yield plain
        emptied(site)
        for folder_left in (target, plain.temporary):
            shutil.rmtree(folder_left, ignore_errors=True)


def plain_folder(stack: Stack, folder: Path, tool: str, install: str) -> None:
    """Write a plain Dockerfile and what it copies."""
    folder.mkdir()
    write_system_tar(stack.lock, stack.store, Host(stack.home, CONSOLE), folder / "debian.tar")
    shutil.copy(ca_bundle() or "/etc/ssl/certs/ca-certificates.crt", folder / "ca.pem")
    if tool == "uv":
        shutil.copy(Path(sys.executable).with_name("uv").resolve(), folder / "uv")
    else:  # Debian's Python has none of its own
        (wheel,) = (package.wheel for package in stack.lock.python if package.name == "pip")
        tool = wheel.filename
        shutil.copy(stack.store.path(wheel.sha256), folder / tool)
    (folder / "Dockerfile").write_text(DOCKERFILE.format(tool=tool, install=install))


def pulled(site: Site, name: str) -> float:
    """Return the seconds of a pull by the engine, which has nothing then."""
    insecure = ["--tls-verify=false"] if site.kind == "podman" else []
    seconds = timed(partial(site.call, "pull", *insecure, name))
    emptied(site)
    return seconds


def pulled_by_ctr(site: Site, name: str) -> float:
    """Return the seconds of a pull by the command of the containerd below an older Docker."""
    below = Path(site.env["DOCKER_HOST"].removeprefix("unix://")).parent
    own = ["ctr", "--address", str(below / "exec/containerd/containerd.sock"), "--namespace", "bench"]
    seconds = timed(lambda: ran([*own, "images", "pull", "--plain-http", name], dict(os.environ)))
    ran([*own, "images", "remove", "--sync", name], dict(os.environ))
    return seconds


@contextmanager
def registry(folder: Path) -> Iterator[str]:
    """Serve a registry of nothing, which is gone with the block."""
    target = folder / "registry"
    with serve_registry(target) as host:
        yield host
    shutil.rmtree(target)


def started(name: str, folder: Path, request: pytest.FixtureRequest) -> AbstractContextManager[Site | None]:
    """Start an engine; its images go with the block."""
    if name == "embedded":
        return nullcontext(None)
    starts: dict[str, Callable[[], AbstractContextManager[Site]]] = {
        "docker-20.10": lambda: old_docker(folder),
        "docker-26.1": lambda: new_docker(folder, request.getfixturevalue("debian13")),
        "podman": lambda: podman(folder),
    }
    return emptied_after(starts[name](), folder)


@contextmanager
def emptied_after(engine: AbstractContextManager[Site], folder: Path) -> Iterator[Site]:
    with engine as site:
        yield site
        emptied(site)
    shutil.rmtree(folder, ignore_errors=True)


def emptied(site: Site) -> None:
    """Take away an engine's images and what its builds have left, caches included."""
    if site.kind == "podman":
        site.call("rmi", "--all", "--force")
    site.call("system", "prune", "--all", "--force")
    if site.kind == "docker" and site.keeps_time:
        site.call("buildx", "prune", "--all", "--force")


def settled() -> None:
    """Have what was written so far on the disk, so that a case does not wait for the one before."""
    os.sync()


def ran(command: list[str], env: dict[str, str]) -> None:
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {(done.stdout + done.stderr)[-3000:]}"


def left(folder: Path) -> Rows:
    """Return the figures that an earlier run has written."""
    path = folder / "side-by-side.json"
    if not path.exists():
        return {}
    report = json.loads(path.read_text())
    assert report["machine"] == machine(), "its figures are of another machine"
    return {row: {who: found["seconds"] for who, found in of.items()} for row, of in report["rows"].items()}


def machine() -> str:
    return f"{platform.machine()}, {len(os.sched_getaffinity(0))} processors"


def written(rows: Rows, earlier: Rows, folder: Path) -> None:
    """Write the figures, with the earlier ones, as JSON and as a picture."""
    both: Rows = {}
    for row in dict.fromkeys([*earlier, *rows]):
        old, new = earlier.get(row, {}), rows.get(row, {})
        both[row] = {who: [*old.get(who, []), *new.get(who, [])] for who in dict.fromkeys([*old, *new])}
    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        row: {
            who: {"seconds": series, "median": medians({who: series})[who]} for who, series in found.items()
        }
        for row, found in both.items()
    }
    report = {"image": NAME, "machine": machine(), "rows": figures}
    (folder / "side-by-side.json").write_text(json.dumps(report, indent=2, sort_keys=True) + "\n")
    groups = [Bars(row, {who: (series, "s") for who, series in found.items()}) for row, found in both.items()]
    title = f"{NAME} on {machine()}; medians, with lines from least to most"
    (folder / "side-by-side.svg").write_text(drawn(title, groups))
