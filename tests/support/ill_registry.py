"""A registry that fails by script.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from reprobuild.oci.registry import client as client_module
from reprobuild.oci.registry.client import Registry, Target
from support.scripted import Answer, Asked, Scripted, serve_answers

CONFIG = b'{"architecture":"amd64","os":"linux"}'


DIGEST = "sha256:" + hashlib.sha256(CONFIG).hexdigest()


BUSY = Answer(503, b"<html>try later</html>")


@pytest.fixture(autouse=True)
def logins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "auth.json"
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(file))
    monkeypatch.setattr(client_module, "CERTIFICATES", (tmp_path / "docker", tmp_path / "containers"))
    return file


def registry(served: Scripted, actions: str = "pull") -> Registry:
    return Registry(Target(served.host, "team/x", "1"), actions, wait=0.001)


@contextmanager
def answering(pages: Mapping[str, Answer | list[Answer]]) -> Iterator[Scripted]:
    """Serve a registry of these pages, by ``METHOD path``; a list is used up to its last answer."""

    def answer(asked: Asked) -> Answer:
        line = f"{asked.method} {asked.path.partition('?')[0]}"
        if asked.path == "/v2/":
            return pages.get("root", Answer())  # type: ignore[return-value]
        found = pages.get(line, Answer(404))
        if isinstance(found, list):
            return found.pop(0) if len(found) > 1 else found[0]
        return found

    with serve_answers(answer) as served:
        yield served
