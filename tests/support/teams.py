"""A team that pushes its layers to a registry, and a fresh machine that pulls them: fixtures.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from reprobuild.engines.embedded import OciEngine
from reprobuild.fetch.download import Patience
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.layers.cache import LayerCache
from reprobuild.layers.registry_pull import Pace, take_layers
from reprobuild.layers.registry_push import publish_layers
from reprobuild.lock.layer_record import LayerRecord
from reprobuild.lock.model import Lock
from reprobuild.oci.registry import client as registry_module
from reprobuild.oci.registry.client import Registry, Target
from reprobuild.oci.registry.push import push
from support.building import lock_for, no_context, without_debian
from support.registry import serve_registry
from support.wheels import put, simple_wheel

NONE = LayerRecord(images={}, layers={})


HASTY = Patience(attempts=2, pause=0.01, connect=5, silence=5)


BIG = {"data": "x = " + "'" + "0123456789abcdef" * 4096 + "'\n"}


class Team:
    """Who pushes: a home with an image, and the registry that has it."""

    def __init__(self, home: Home, registry: str) -> None:
        self.home, self.registry, self.host = home, registry, Host(home, Console(quiet=True))
        self.lock = self.locked("torch", "toy")
        self.digest = self.build(self.lock)
        self.record = self.publish(self.lock, self.digest)

    def locked(self, *names: str) -> Lock:
        return lock_for(self.home, [put(self.home, name, simple_wheel(name, **BIG)) for name in names])

    def build(self, lock: Lock) -> str:
        engine = OciEngine(self.host)
        digest = engine.build(lock, no_context)
        engine.images.name(digest, "team/x:1")
        return digest

    def publish(self, lock: Lock, digest: str, record: LayerRecord = NONE) -> LayerRecord:
        images, target = OciEngine(self.host).images, Target.parse(f"{self.registry}/team/x:1")
        image = images.find(digest)
        push(images, image, target, self.host.console, force=True)
        return publish_layers(lock, image, images, target, self.host, record=record)


class Fresh:
    """A machine that has nothing, and what it prints."""

    def __init__(self, home: Home, team: Team) -> None:
        self.home, self.team = home, team
        self.host = Host(home, Console())

    def take(
        self,
        record: LayerRecord,
        registry: str = "",
        lock: Lock | None = None,
        pace: float = 60,
        *,
        lay_out: bool = False,
    ) -> bool:
        source = Target.parse_repository(f"{registry or self.team.registry}/team/x")
        speed = Pace(seconds=pace)
        return take_layers(
            lock or self.team.lock, record, source, self.host, lay_out=lay_out, patience=HASTY, pace=speed
        )

    def build(self, lock: Lock | None = None, *, wheels: bool, record: LayerRecord | None = None) -> str:
        if wheels:
            shutil.copytree(self.team.home.root / "store", self.home.root / "store", dirs_exist_ok=True)
        engine = OciEngine(self.host, record=record or self.team.record)
        return engine.build(lock or self.team.lock, no_context)

    def has(self, record: LayerRecord) -> list[str]:
        return [each.title for each in record.layers.values() if LayerCache(self.home, record).get(each.key)]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    folder = tmp_path_factory.mktemp("certificates")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry_module, "CERTIFICATES", (folder / "docker", folder / "containers"))
        patch.setattr(Registry.__init__, "__kwdefaults__", {"wait": 0.01})
        yield without_debian(patch)


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory, ran: list[str]) -> Iterator[Team]:
    folder = tmp_path_factory.mktemp("team")
    with serve_registry(folder / "registry") as host:
        yield Team(Home(folder / "home"), host)


@pytest.fixture
def fresh(tmp_path: Path, team: Team) -> Fresh:
    return Fresh(Home(tmp_path / "fresh"), team)
