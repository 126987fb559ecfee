"""Resolve the base image of a request: its digests in the registry, and its content by its layers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from typing import Any

from ..errors import RegistryError, RequestError, ResolveError
from ..fetch.base_layers import base_env_of, base_layers_of, fetch_layers, registry_of
from ..fetch.store import Store
from ..host.console import first_of
from ..host.host import Host
from ..in_image.selftest.names import FORBIDDEN
from ..lock.base_image import MEDIA_TYPES, BaseImage, BaseLayer
from ..lock.model import MACHINES, Lock
from ..oci.documents import image_json, is_list, sha256
from ..oci.file_tree import read_layers
from ..request.model import Request
from ..request.reference import Reference
from ..request.table import Table, refused_as
from .base_image_files import STATUS, Content, wanted

_UNDATED = datetime(1990, 1, 1, tzinfo=UTC)
"""An image that says that it is older has a time stamp that was set, as reproducible builds do."""


def resolve_base(
    request: Request, architecture: str, *, existing: Lock | None, host: Host
) -> BaseImage | None:
    """Return the current base image of a request from its registry; None if it names none.

    That of ``existing`` stays where it is of the same name. Its layers are in the store afterwards. Raises
    `RegistryError`, `FetchError`, and `ResolveError` for an image that cannot be built on.
    """
    if request.base_image is None:
        return None
    reference = Reference.parse(request.base_image)
    assert reference is not None  # the request has been checked
    before = existing.base if existing is not None else None
    if before is not None and before.image == str(reference):
        assert existing is not None
        same = ("python", "conda")
        if all(getattr(existing.request, key) == getattr(request, key) for key in same):
            _check(before, request, host)
            return before
        pinned = before.index or before.manifests[f"linux/{architecture}"]
        reference = replace(reference, digest=pinned)
    try:
        found = _read(reference, request, f"linux/{architecture}", host)
        # What a registry says is held to the form that a lock has.
        with refused_as(RequestError, request.base_image):
            BaseImage.read(Table(found.to_dict(), "base"))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise RegistryError(
            f"{request.base_image}: the registry sent no manifest: {type(error).__name__} {error}",
            hint="push the image again",
        ) from None
    except RequestError as error:
        raise ResolveError(f"{error.message}; no lock can say so", hint="take another base") from None
    _check(found, request, host)
    return found


def dpkg_status(base: BaseImage, host: Host) -> str:
    """Return dpkg's list of the packages that a base image has."""
    store = Store(host.home)
    fetch_layers(base.image, base.layers, store, host.console)
    tree = read_layers((store.path(y.sha256) for y in base.layers), lambda path, _: path == STATUS)
    if STATUS not in tree.kept:
        raise ResolveError(
            f"{base.image} has no /{STATUS}, so no Debian package can be put on top of it",
            hint="take a base that has dpkg, or leave the request's apt packages out",
        )
    return tree.kept[STATUS].decode("utf-8", "replace")


def _read(reference: Reference, request: Request, platform: str, host: Host) -> BaseImage:
    name = str(Reference.parse(request.base_image or ""))
    host.console.step(f"reading the base image {name}")
    registry = registry_of(reference)
    top = registry.read_manifest(reference.wanted)
    manifests = {platform: sha256(top)}
    documents = [top]
    index, document = None, image_json(top, name)
    if is_list(top, name):
        index, manifests = sha256(top), _platforms(document, name, platform)
        documents.append(registry.read_manifest(manifests[platform]))
        document = image_json(documents[-1], name)
        if is_list(documents[-1], name):
            raise ResolveError(f"{name}: its image for {platform} is a list of images again")
    if "config" not in document:
        raise ResolveError(
            f"{name} has a manifest of an unknown type: {document.get('mediaType', 'schema 1')}",
            hint="push it again with a tool that writes Docker's schema 2 or OCI's form",
        )
    config_digest = document["config"]["digest"]
    documents.append(registry.read_blob(config_digest))
    config = image_json(documents[-1], name)
    if index is None and f"{config.get('os')}/{config.get('architecture')}" != platform:
        raise _no_platform(name, platform, [f"{config.get('os')}/{config.get('architecture')}"])
    section: Mapping[str, Any] = config.get("config") or {}
    if section.get("OnBuild"):
        raise ResolveError(f"{name} has ONBUILD steps, which a locked image cannot run")
    layers = _layers(document, config, name)
    store = Store(host.home)
    for each in documents:
        store.add_document(each)  # `fetch` verifies the lock with them, also without a network
    fetch_layers(name, layers, store, host.console)
    env = base_env_of(config)
    tree = read_layers((store.path(y.sha256) for y in layers), wanted(request.python))
    content = Content(tree.files, tree.kept, name)
    glibc = content.glibc(platform)
    # Debian's own package brings what is missing; conda's Python needs none.
    python, version = ("", "") if request.conda else content.python(request.python, env.get("PATH", ""))
    return BaseImage(
        image=name,
        index=index,
        manifests=manifests,
        config=config_digest,
        created=str(config.get("created") or ""),
        system=content.system,
        suite=content.suite,
        glibc=glibc,
        python=python,
        python_version=version,
        cuda=content.cuda,
        env=env,
        layers=layers,
    )


def _platforms(index: Mapping[str, Any], name: str, platform: str) -> dict[str, str]:
    """Return the digests of the platforms that images can be made for."""
    found: dict[str, str] = {}
    every: list[str] = []
    for entry in index["manifests"]:
        each = entry.get("platform") or {}
        if each.get("os") != "unknown":  # an attestation
            every.append(f"{each.get('os')}/{each.get('architecture')}")
            if every[-1] in MACHINES:
                found.setdefault(every[-1], str(entry["digest"]))
    if platform not in found:
        raise _no_platform(name, platform, every)
    return found


def _no_platform(name: str, platform: str, have: Collection[str]) -> ResolveError:
    return ResolveError(
        f"{name} is not available for {platform}; it is for {', '.join(dict.fromkeys(have)) or 'nothing'}",
        hint="name a base image that is made for this machine's platform",
    )


def _layers(manifest: Mapping[str, Any], config: Mapping[str, Any], name: str) -> tuple[BaseLayer, ...]:
    diff_ids = config["rootfs"]["diff_ids"]
    if len(diff_ids) != len(manifest["layers"]):
        raise ResolveError(f"{name} is damaged: its manifest and configuration list different layers")
    for layer in manifest["layers"]:
        if layer["mediaType"] not in MEDIA_TYPES:
            raise ResolveError(f"{name} has a layer of a kind that is not supported: {layer['mediaType']}")
    # Held to the form that a lock has before any of it is fetched.
    found = [asdict(layer) for layer in base_layers_of(manifest, config)]
    with refused_as(RequestError, name):
        return tuple(
            BaseLayer.read(Table({k.replace("_", "-"): value for k, value in each.items()}, f"layer {n}"))
            for n, each in enumerate(found, 1)
        )


def _check(base: BaseImage, request: Request, host: Host) -> None:
    """Refuse unsuitable base images, and return warnings for the user."""
    if base.cuda:
        text = f"{base.image} ships its own CUDA libraries: {first_of(base.cuda)}"
        if not request.allow_cuda:
            raise ResolveError(
                f"{text}; torch's wheels contain others, and it is undefined which of the two is loaded",
                hint="take a base without CUDA, or set base.allow-cuda = true (--allow-cuda)",
            )
        host.console.warn(text)
    spoiled = sorted(set(FORBIDDEN) & base.env.keys())
    if spoiled:
        raise ResolveError(
            f"{base.image} sets {', '.join(spoiled)}, which changes how numbers are computed",
            hint="take a base that does not",
        )
    if not base.python and not request.conda and not base.suite:
        raise ResolveError(
            f"{base.image} ({base.system}) has no Python {request.python}",
            hint="take a base that has it, or one of Debian, where its packages can be put on top",
        )
    if request.apt and not base.suite:
        raise ResolveError(
            f"{base.image} is {base.system}; apt packages can be locked for Debian only",
            hint="leave the request's apt packages out, or take a base of Debian",
        )
    if request.as_of is not None:
        _check_date(base, request.as_of, host)


def _check_date(base: BaseImage, as_of: date, host: Host) -> None:
    made: datetime | None = None
    with suppress(ValueError):
        made = datetime.fromisoformat(base.created[:19]).replace(tzinfo=UTC)
    if made is None or made < _UNDATED:
        host.console.warn(f"{base.image} does not say when it was made, so as-of {as_of} is not checked")
    elif made.date() > as_of:
        raise ResolveError(
            f"{base.image} was made on {made.date()}, after as-of {as_of}",
            hint="name an older tag or a digest of it in base.image",
        )
