"""The layers of a base image → the store, from its registry."""

from __future__ import annotations

import time
from collections.abc import Sequence
from urllib.parse import urlsplit

from ..host.console import Console
from ..host.home import size_text
from ..lock.base_image import BaseLayer
from ..registry.client import Registry, Target
from ..request.reference import DOCKER_HUB, Reference
from .download import Download, Patience, Stop, Wanted
from .store import Store

_POLL_SECONDS = 0.2


def registry_of(reference: Reference) -> Registry:
    """Return the registry of a reference, to read from. Raises `RegistryError`."""
    host = reference.host
    if host == DOCKER_HUB:
        # Only Docker's own client knows which host answers for that name.
        import docker.auth  # noqa: PLC0415 -- slow to load, and few need it

        host = urlsplit(docker.auth.INDEX_URL).netloc
    return Registry(Target(host, reference.repository, reference.tag), "pull")


def fetch_base(
    image: str, layers: Sequence[BaseLayer], store: Store, console: Console, patience: Patience | None = None
) -> None:
    """Make all layers of a base image present in the store, verified; those that are there are left alone.

    Raises `RegistryError`, and `FetchError` for bytes that are not those of the digest.
    """
    missing = [y for y in {y.digest: y for y in layers}.values() if not store.has(y.sha256, y.size)]
    if not missing:
        return
    reference = Reference.parse(image)
    assert reference is not None
    registry = registry_of(reference)
    total = sum(layer.size for layer in missing)
    console.step(f"fetching {len(missing)} layers of {image}, {size_text(total)}")
    with console.progress("base", total) as advance:
        for layer in missing:
            session, url = registry.reader(layer.digest)
            artifact = Wanted(
                filename=f"layer {layer.digest[:19]} of {image}",
                sha256=layer.sha256,
                size=layer.size,
                urls=(url,),
                gone="the registry no longer has this image: `reprobuild lock --upgrade`",
            )
            while not store.has(layer.sha256, layer.size):
                with store.partial(layer.sha256) as partial:
                    if partial is None:
                        time.sleep(_POLL_SECONDS)  # another process is fetching it
                        continue
                    Download(
                        artifact,
                        partial,
                        session=session,
                        stop=Stop(),
                        advance=advance,
                        patience=patience or Patience(),
                    ).run()
                    store.add(layer.sha256, partial.path)
