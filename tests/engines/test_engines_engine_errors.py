"""What Docker and Podman print, turned into an error by its cause."""

from __future__ import annotations

import pytest

from reprobuild.engines.engine_errors import build_failed, refused
from reprobuild.errors import BuildError, EngineError


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("write /var/lib/docker/x: no space left on device", EngineError, "Docker has no space left"),
        ("Disk quota exceeded", EngineError, "Docker has no space left"),
        ("Cannot connect to the Docker daemon at unix:///x", EngineError, "lost the connection to Docker"),
        (
            "rpc error: code = Unavailable desc = error reading from server: EOF",
            EngineError,
            "lost the connection to Docker",
        ),
        ("exit code: 2: RUN pip install", BuildError, "Docker could not build the image: exit code: 2"),
    ],
)
def test_a_failed_build(text: str, kind: type[Exception], says: str) -> None:
    error = build_failed("Docker", text)
    assert type(error) is kind
    assert error.message.startswith(says)


def test_a_refusal() -> None:
    assert refused("Podman", "tag", "no space left on device").hint.startswith("`podman system prune`")
    assert refused("Podman", "tag", "denied").message == "Podman refused to tag: denied"
