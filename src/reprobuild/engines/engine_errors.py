"""Turn the output of failed Docker and Podman commands into errors."""

from __future__ import annotations

import re
from contextlib import suppress

from ..errors import BuildError, EngineError, ImageError
from ..render.labels import LABEL
from .protocols import Images

_FULL = ("no space left on device", "disk quota exceeded")
_GONE = re.compile(
    r"rpc error: code = Unavailable|cannot connect to (the docker daemon|podman)|error during connect"
    r"|unable to connect to podman|error reading from server|transport is closing",
    re.IGNORECASE,
)
"""What docker, buildx and podman print when the daemon or machine that builds for them has gone away."""


def build_failed(engine: str, text: str) -> BuildError | EngineError:
    """Return the error for a build that an engine could not finish."""
    if found := no_space(engine, text):
        return found
    if _GONE.search(text):
        return gone(engine, "build", text)
    return BuildError(f"{engine} could not build the image: {text}")


def gone(engine: str, what: str, text: str) -> EngineError:
    """Return the error for an engine that went away during a request."""
    return EngineError(
        f"lost the connection to {engine} during the request to {what}: {text}",
        hint="start it again and repeat the command; no image was named",
    )


def refused(engine: str, what: str, text: str) -> EngineError:
    """Return the error for an engine that refused a request."""
    return no_space(engine, text) or EngineError(f"{engine} refused to {what}: {text}")


def no_space(engine: str, text: str) -> EngineError | None:
    """Return the error for an engine whose disk is full; None if the text does not say so."""
    if not any(words in text.lower() for words in _FULL):
        return None
    return EngineError(
        f"{engine} has no space left: {text}",
        hint=f"`{engine.lower()} system prune` frees what no image needs; no image was named",
    )


def refuse_stranger(images: Images, name: str) -> None:
    """Raise `EngineError` if a name belongs to an image that reprobuild did not make."""
    with suppress(ImageError):
        if LABEL + "lock" not in images.find(name).labels:
            raise EngineError(
                f"{name} already exists, and is not an image made by reprobuild",
                hint="remove that name first, or pass another one",
            )
