"""Copy an image of the embedded store into Docker or Podman, with the same digest; tag it when complete."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import takewhile
from typing import IO

from ..errors import EngineError, ImageError
from ..oci.archive import write_docker, write_oci
from ..oci.blobs import refuse_damaged
from ..oci.recompress import blobs_of
from ..oci.single_image_layout import alone
from ..oci.store import Image, ImageStore, image_name, refuse_candidate
from ..oci.stream import CHUNK, piped
from ..render.labels import LABEL
from .loopback_registry import offered
from .protocols import Taker


def load(images: ImageStore, image: Image, name: str, engine: Taker, *, force: bool) -> str:
    """Copy an image of the store into an engine under a name; return the digest that it has there.

    Raises `ImageError` for a candidate, and `EngineError` if another image has the name and not ``force``, or
    if what arrived is not what was sent; then nothing is named.
    """
    refuse_candidate(image)
    with suppress(ImageError):
        there = engine.images.find(image_name(name))
        if there.digest == _digest_there(images, image, engine):
            return there.digest
        if not force:
            raise EngineError(
                f"{engine.kind} has another image called {name} ({there.digest[:19]})",
                hint="--force moves the name",
            )
    digest = send(images, image, engine)
    engine.images.name(digest, name)
    return digest


def send(images: ImageStore, image: Image, engine: Taker) -> str:
    """Copy an image of the store into an engine, without a name; return the digest that it has there.

    What the engine already has is not sent. Raises `EngineError` if what arrived is not what was sent.
    """
    wanted = _digest_there(images, image, engine)
    with suppress(ImageError):
        return engine.images.find(wanted).digest

    try:
        if load_folder := engine.load_folder:
            with alone(images, image) as layout:
                load_folder(layout)
        else:
            _send_archive(images, image, engine)
    except EngineError:
        refuse_damaged(*blobs_of(images, image).values())  # the cause that the engine would be blamed for
        raise
    try:
        return engine.images.find(wanted).digest
    except ImageError:
        raise EngineError(
            f"{engine.kind} loaded the image, but does not list {wanted}", hint="see its log"
        ) from None


def _send_archive(images: ImageStore, image: Image, engine: Taker) -> None:
    others = engine.images.stacks(f"{LABEL}lock")
    if engine.takes_oci:
        there = _blobs_there(images, others, engine)
        _load(engine, lambda out: write_oci(images, image, None, out, without=there))
        return
    below = [diff_id for _, diff_id in images.layers(image.digest)]
    shared = max((_shared(below, y) for y in others.values()), default=0)
    with _pulled_layers(images, image, engine, shared) as came:
        without = len(below) if came else shared
        _load(engine, lambda out: write_docker(images, image, out, without=without))


def _load(engine: Taker, write: Callable[[IO[bytes]], object]) -> None:
    with piped(write) as archive:
        engine.load(iter(partial(archive.read, CHUNK), b""))


@contextmanager
def _pulled_layers(images: ImageStore, image: Image, engine: Taker, shared: int) -> Iterator[bool]:
    """Yield whether an engine has pulled the layers of an image, if that is faster than an archive.

    They stay for the image that is loaded within the block. ``shared``: how many of the lowest it has anyway.
    """
    pulled = engine.pulled
    if pulled is None or shared == len(images.layers(image.digest)):
        yield False
        return
    with offered(images, image, known=shared) as reference, pulled(reference) as came:
        yield came


def _digest_there(images: ImageStore, image: Image, engine: Taker) -> str:
    return image.digest if engine.keeps_manifests else str(images.manifest(image.digest)["config"]["digest"])


def _blobs_there(images: ImageStore, others: Mapping[str, Sequence[str]], engine: Taker) -> set[str]:
    """Return the layers that an engine has as the blobs of our own: those of the images that both have."""
    both = (y for y in images.images() if _digest_there(images, y, engine) in others)
    return {layer["digest"] for each in both for layer in images.manifest(each.digest)["layers"]}


def _shared(layers: Sequence[str], others: Sequence[str]) -> int:
    """Return how many of the lowest layers are the same."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(layers, others, strict=False))))
