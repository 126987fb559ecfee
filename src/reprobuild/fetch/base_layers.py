"""Download the layers of a base image from its registry into the store."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal
from urllib.parse import urlsplit

from ..errors import LockError
from ..host.console import Console, size_text
from ..host.home import storage_errors
from ..host.verified import read_kept
from ..lock.base_image import MEDIA_TYPES, BaseImage, BaseLayer
from ..oci.documents import DOCUMENT_LIMIT, parse_json, sha256
from ..oci.registry.client import Registry, Target
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
    base: BaseImage, platform: str, store: Store, console: Console, patience: Patience | None = None
) -> None:
    """Download all layers of a lock's base image into the store and verify them against its digest.

    Raises `LockError` where the lock says something else of the image than the manifest with the locked
    digest, `RegistryError`, and `FetchError` for bytes that are not those of the digest.
    """
    try:
        _hold(base, platform, store)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise _other(base, f"a document of the locked digest is damaged: {type(error).__name__}") from None
    fetch_layers(base.image, base.layers, store, console, patience)


def _hold(base: BaseImage, platform: str, store: Store) -> None:
    digest = base.manifests[platform]
    if base.index is not None:
        listed = _parsed(_document(base, base.index, store), base)["manifests"]
        if digest not in [entry["digest"] for entry in listed if _platform(entry) == platform]:
            raise _other(base, f"{base.index[:19]}… has no {digest[:19]}… for {platform}")
    manifest = _parsed(_document(base, digest, store), base)
    if manifest["config"]["digest"] != base.config:
        raise _other(base, f"{digest[:19]}… has another configuration")
    config = _parsed(_document(base, base.config, store, kind="blobs"), base)
    layers = base_layers_of(manifest, config)
    if list(layers) != list(base.layers):
        raise _other(base, f"{digest[:19]}… has other layers")
    if base_env_of(config) != dict(base.env):
        raise _other(base, f"{digest[:19]}… has other variables")


def documents_of(base: BaseImage) -> tuple[str, ...]:
    """Return the SHA-256 of each stored document that a base image is verified against."""
    found = (base.index, base.config, *base.manifests.values())
    return tuple(digest.removeprefix("sha256:") for digest in found if digest)


def base_layers_of(manifest: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[BaseLayer, ...]:
    """Return the layers of an image, unchecked.

    Raises `KeyError`, `TypeError`, `ValueError` for documents of no image.
    """
    return tuple(
        BaseLayer(
            digest=layer["digest"],
            size=layer["size"],
            media_type=MEDIA_TYPES.get(layer["mediaType"], layer["mediaType"]),
            diff_id=diff_id,
        )
        for layer, diff_id in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True)
    )


def base_env_of(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables that an image sets."""
    return dict(line.split("=", 1) for line in (config.get("config") or {}).get("Env") or () if "=" in line)


def _document(
    base: BaseImage, digest: str, store: Store, *, kind: Literal["manifests", "blobs"] = "manifests"
) -> bytes:
    path = store.path(digest.removeprefix("sha256:"))
    with storage_errors(path), suppress(FileNotFoundError):
        data = read_kept(path, DOCUMENT_LIMIT)
        if sha256(data) == digest:
            return data
    reference = Reference.parse(base.image)
    assert reference is not None
    registry = registry_of(reference)
    data = registry.read_manifest(digest) if kind == "manifests" else registry.read_blob(digest)
    store.add_document(data)
    return data


def _parsed(data: bytes, base: BaseImage) -> Any:
    try:
        return parse_json(data)
    except ValueError:
        raise _other(base, "a document of the locked digest is not JSON") from None


def _platform(entry: Mapping[str, Any]) -> str:
    each = entry.get("platform") or {}
    return f"{each.get('os')}/{each.get('architecture')}"


def _other(base: BaseImage, reason: str) -> LockError:
    return LockError(
        f"the lock does not describe the image whose digest it names, {base.image}: {reason}",
        hint="the lock was edited, or merged by hand: do not build it before you know by whom;"
        " `reprobuild lock --upgrade` makes a new one",
    )


def fetch_layers(
    image: str, layers: Sequence[BaseLayer], store: Store, console: Console, patience: Patience | None = None
) -> None:
    """Download missing layers of an image into the store, verified.

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
