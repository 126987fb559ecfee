"""An image of the embedded store → Docker or Podman, under its own digest, named once it is whole."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import IO

from ..errors import EngineError, ImageError
from ..oci.archive import write_docker, write_oci
from ..oci.store import Image, ImageStore, image_name, refuse_candidate
from ..oci.stream import piped
from .protocols import Taker


def load(images: ImageStore, image: Image, name: str, engine: Taker, *, force: bool) -> str:
    """Copy an image of the store into an engine under a name; return the digest that it has there.

    Raises `ImageError` for a candidate, and `EngineError` if another image has the name and not ``force``, or
    if what arrived is not what was sent; then nothing is named.
    """
    refuse_candidate(image)
    wanted = image.digest if engine.keeps_manifests else images.manifest(image.digest)["config"]["digest"]
    with suppress(ImageError):
        there = engine.images.find(image_name(name))
        if there.digest == wanted:
            return there.digest
        if not force:
            raise EngineError(
                f"{engine.kind} has another image called {name} ({there.digest[:19]})",
                hint="--force moves the name",
            )

    def write(out: IO[bytes]) -> None:
        if engine.takes_oci:
            write_oci(images, image, None, out)
        else:
            write_docker(images, image, out)

    with piped(write) as archive:
        engine.load(iter(partial(archive.read, 1 << 20), b""))
    try:
        found = engine.images.find(wanted)
    except ImageError:
        raise EngineError(
            f"{engine.kind} loaded the image, but does not list {wanted}", hint="see its log"
        ) from None
    engine.images.name(found.digest, name)
    return found.digest
