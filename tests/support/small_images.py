"""An image without layers in the store, and a container that a test starts: fixtures.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from conftest import GOLDEN
from reprobuild.cli import run_options
from reprobuild.engines.embedded import OciEngine
from reprobuild.engines.protocols import RunOptions
from reprobuild.fetch.arrivals import Arrivals
from reprobuild.layers.image_documents import documents
from reprobuild.lock.model import Lock
from reprobuild.pipeline import steps
from reprobuild.render.image_config import image_config
from support.reports import Script, a_check, a_report, printing

if TYPE_CHECKING:
    from support.commands import Call  # pytest itself imports the plugin


LOCK = GOLDEN / "pylock.torch-cu121.toml"


NAME = "reprobuild/torch:2.4.1-cu121-py311"


CHECKS = [
    a_check(name=f"check-number-{number}") for number in range(40)
] + [a_check(name="control", status="inconclusive", reason="one core is not enough to see it")]  # fmt: skip


@pytest.fixture
def container(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Stand in for fetch, build and container; call it with the code that the container runs."""
    monkeypatch.setattr(steps, "check_host", lambda _lock: None)
    monkeypatch.setattr(OciEngine, "check", lambda _, gpu: None)
    monkeypatch.setattr(steps, "fetching", lambda *_: nullcontext(Arrivals()))

    def build(engine: OciEngine, lock: Lock, context: object, arrivals: object) -> str:
        return engine.images.add(documents(lock, image_config(lock), []))

    def runs(code: str) -> None:
        monkeypatch.setattr(OciEngine, "runner", lambda _, digest: Script(code, digest=digest))

    monkeypatch.setattr(OciEngine, "build", build)
    runs(printing(a_report(*CHECKS)))
    return runs


@pytest.fixture
def small_digest(container: Any, call: Call) -> str:
    """The digest of an image that is there."""
    found: str = json.loads(call("image", str(LOCK), "--json").out)["digest"]
    return found


@pytest.fixture
def handed_on(small_digest: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the engine was told to run; it ends with status 5."""
    calls: list[Any] = []

    def run(engine: OciEngine, reference: str, argv: tuple[str, ...], settings: RunOptions) -> int:
        calls.append((reference, argv, settings))
        return 5

    monkeypatch.setattr(OciEngine, "run", run)
    monkeypatch.setattr(run_options, "gpu_access", lambda: "no NVIDIA GPU on this machine")
    return calls
