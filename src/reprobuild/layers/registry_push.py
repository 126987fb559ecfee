"""Record the layers of a pushed image, with the lists of their paths.

A manifest of its own keeps lists and layers: what no manifest names, a registry may collect as garbage.
"""

from __future__ import annotations

import json

from ..errors import ImageError
from ..host.home import storage_errors
from ..host.host import Host
from ..lock.layer_record import LayerRecord, RecordedLayer
from ..lock.model import Lock
from ..oci.documents import EMPTY, artifact_manifest, descriptor, sha256
from ..oci.registry.client import Registry, Target
from ..oci.store import Image, ImageStore
from .cache import LayerCache
from .plan import plan, plan_digest
from .registry_pull import dump_paths

_LIST_TYPE = "application/vnd.reprobuild.layers.v1"
_PATHS_TYPE = "application/vnd.reprobuild.paths.v1+json"


def publish_layers(
    lock: Lock, image: Image, images: ImageStore, target: Target, host: Host, *, record: LayerRecord
) -> LayerRecord:
    """Push what `registry_pull.take_layers` needs of an image; return the record with its layers.

    ``lock`` is the image's own. Raises `ImageError` where its layers were not made here or are gone,
    `RegistryError`, `StorageError`.
    """
    asked = plan(lock)
    digest, cache = plan_digest(asked), LayerCache(host.home, record, host.console)
    keys, found = cache.keys(digest) or [], cache.known(digest)
    manifest = images.manifest(image.digest)
    if found is None or [y.layer.digest for y in found] != [y["digest"] for y in manifest["layers"][:-1]]:
        raise ImageError(
            f"the layers of {image.digest[:19]} cannot be recorded: they were not made by this reprobuild, or"
            " `clean` has removed what is known of them",
            hint="`reprobuild image` with its lock makes what is missing; then push again",
        )
    place = Target(target.host, target.repository, f"layers-{digest[:12]}")
    registry = Registry(place)
    recorded, blobs = [], []
    with host.home.scratch("paths") as scratch:

        def send(data: bytes) -> None:
            if not registry.has_blob(sha256(data)):
                with storage_errors(scratch):
                    (scratch / "blob").write_bytes(data)
                registry.send_blob(sha256(data), scratch / "blob", lambda _: None)

        send(EMPTY)
        for layer, key, cached in zip(asked, keys, found, strict=True):
            paths, own = dump_paths(cached), cached.layer
            send(paths)
            recorded.append(
                RecordedLayer(
                    key=key,
                    title=layer.title,
                    diff_id=own.diff_id,
                    digest=own.digest,
                    size=own.size,
                    media_type=own.media_type,
                    paths=sha256(paths),
                    paths_size=len(paths),
                )
            )
            blobs += [
                {"digest": own.digest, "mediaType": own.media_type, "size": own.size},
                descriptor(paths, _PATHS_TYPE),
            ]
    table = artifact_manifest(_LIST_TYPE, blobs)
    registry.send_manifest(json.dumps(table, sort_keys=True, separators=(",", ":")).encode())
    return record.with_image(f"{lock.request.name} {lock.platform}", digest, recorded)
