"""Build with the embedded engine and load the layers into Docker or Podman, faster than their builders.

The image has the digest of the embedded engine's; Docker or Podman tests it inside itself, and names it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..fetch.arrivals import Arrivals
from ..host.host import Host
from ..lock.layer_record import LayerRecord
from ..lock.model import Lock
from .embedded import OciEngine
from .protocols import EngineName, Images, WriteContext, require_gpu
from .transfer import send

if TYPE_CHECKING:  # the SDK takes longer to import than all else
    from ..selftest.run import Runner
    from .docker import DockerEngine
    from .podman import PodmanEngine


class HandedOver:
    """An engine that stores and tests images built by the embedded engine."""

    built_by: EngineName = "oci"

    def __init__(
        self, keeper: DockerEngine | PodmanEngine, host: Host, record: LayerRecord | None = None
    ) -> None:
        self._keeper, self._own, self._host = keeper, OciEngine(host, runs=False, record=record), host

    @property
    def kind(self) -> EngineName:
        """The name of the engine that keeps the image."""
        return self._keeper.kind

    @property
    def images(self) -> Images:
        """The images of the engine that keeps it."""
        return self._keeper.images

    def check(self, *, gpu: bool) -> None:
        """Raise for what either engine needs and lacks; see `protocols.Engine`."""
        self._own.check(gpu=False)
        if gpu:
            require_gpu(self._keeper.runner("").gpu_missing())

    def build(self, lock: Lock, context: WriteContext, arrivals: Arrivals | None = None) -> str:
        """Build the image in the embedded store, where it stays a candidate, and copy it into the engine."""
        image = self._own.images.find(self._own.build(lock, context, arrivals))
        self._host.console.step(f"copying {image.digest[:19]} to {self.kind}")
        return send(self._own.images, image, self._keeper)

    def runner(self, digest: str) -> Runner:
        """Return what runs programs in an image for the self-test."""
        return self._keeper.runner(digest)
