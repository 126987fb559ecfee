"""What Docker and Podman say when something goes wrong → our errors."""

from __future__ import annotations

from contextlib import suppress

from ..errors import BuildError, EngineError, ImageError
from ..image_config import LABEL
from .base import Images

_FULL = ("no space left on device", "disk quota exceeded")


def build_failed(engine: str, text: str) -> BuildError | EngineError:
    """Return the error of a build that an engine could not finish."""
    return no_space(engine, text) or BuildError(f"{engine} could not build the image: {text}")


def refused(engine: str, what: str, text: str) -> EngineError:
    """Return the error of an engine that would not do something."""
    return no_space(engine, text) or EngineError(f"{engine} would not {what}: {text}")


def no_space(engine: str, text: str) -> EngineError | None:
    """Return the error of an engine whose disk is full, or None when that is not what the text says."""
    if not any(words in text.lower() for words in _FULL):
        return None
    return EngineError(
        f"{engine} has no space left: {text}",
        hint=f"`{engine.lower()} system prune` frees what no image needs; no image was named",
    )


def refuse_stranger(images: Images, name: str) -> None:
    """Raise `EngineError` when a name belongs to an image that reprobuild did not make."""
    with suppress(ImageError):
        if LABEL + "lock" not in images.find(name).labels:
            raise EngineError(
                f"{name} is there already, and is no image of reprobuild's",
                hint="take its name away first, or give another one",
            )
