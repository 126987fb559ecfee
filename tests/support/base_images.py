"""Base images in a registry on loopback.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reprobuild.lock.base_image import BaseImage
from reprobuild.oci.registry import client as registry_module
from reprobuild.oci.registry.client import Registry
from reprobuild.resolve.base_image import resolve_base
from support.bases import Pusher
from support.hosts import quiet_host
from support.registry import serve_registry
from support.resolving import request


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(registry_module, "CERTIFICATES", (tmp_path / "none",))
    monkeypatch.setattr(Registry.__init__, "__kwdefaults__", {"wait": 0.01})


@pytest.fixture
def host(tmp_path: Path) -> Iterator[str]:
    with serve_registry(tmp_path / "registry") as found:
        yield found


@pytest.fixture
def team(host: str) -> Pusher:
    return Pusher(host, "team/base")


def locked(image: str, **keys: Any) -> BaseImage:
    base = {"image": image, **keys.pop("base", {})}
    found = resolve_base(request(base=base, **keys), "amd64", existing=None, host=quiet_host())
    assert found is not None
    return found
