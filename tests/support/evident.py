"""An image without packages and its evidence, by the command line.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reprobuild.engines.embedded import OciEngine
from reprobuild.fetch.arrivals import Arrivals
from reprobuild.host.home import Home
from reprobuild.oci.registry import client as registry_module
from reprobuild.oci.registry.client import Registry
from reprobuild.pipeline import steps
from reprobuild.render.own_files import own_files
from reprobuild.request.model import DEBIAN_PYTHONS
from support.building import PYTHON, lock_for, without_debian
from support.evidence import whole, write_key
from support.registry import serve_registry
from support.reports import Script, a_check, a_report, printing
from support.wheels import put, simple_wheel

if TYPE_CHECKING:
    from support.commands import Call
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.commands import Call


PROGRAM = {"program": own_files().sha256["selftest.py"]}


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Build for real but for Debian; call it with the report that the self-test in the container prints."""
    without_debian(monkeypatch)
    monkeypatch.setattr(registry_module, "CERTIFICATES", (tmp_path / "none",))
    monkeypatch.setattr(Registry.__init__, "__kwdefaults__", {"wait": 0.01})
    monkeypatch.setattr(steps, "check_host", lambda _lock: None)
    monkeypatch.setattr(steps, "fetching", lambda *_: nullcontext(Arrivals()))
    monkeypatch.setattr(OciEngine, "check", lambda _, gpu: None)

    def report(*checks: dict[str, Any]) -> None:
        table = a_report(*whole(checks), **PROGRAM)
        code = printing(table, status=int(table["verdict"] == "failed"))
        monkeypatch.setattr(OciEngine, "runner", lambda _, digest: Script(code, digest=digest))

    report(a_check())
    return report


@pytest.fixture
def lock(folder: Path) -> Path:
    home = Home.from_environment()
    found = lock_for(home, [put(home, name, simple_wheel(name)) for name in ("torch", "numpy", "frames")])
    path = folder / "pylock.toy.toml"
    debian = [replace(each, name=each.name.replace("python3.11", f"python{PYTHON}")) for each in found.debian]
    suite = DEBIAN_PYTHONS.get(PYTHON, "sid")  # whose Python this is, so that it is not a standalone one
    request = replace(found.request, suite=suite)
    path.write_text(replace(found, request=request, own_files=own_files(), debian=debian).dump())
    return path


@pytest.fixture
def image(runs: Any, lock: Path, call: Call) -> str:
    """The digest of an image that has passed."""
    said = call("image", str(lock), "--tag", "team/toy:1", "--json")
    assert said.status == 0, said.err
    return str(json.loads(said.out)["digest"])


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return write_key(tmp_path / "keys", "team")


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    with serve_registry(tmp_path / "registry") as host:
        yield host
