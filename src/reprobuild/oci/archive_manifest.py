"""The manifest of an image archive, verified against its bytes. Pure.

An archive may describe its image twice, as Docker's ``manifest.json`` and as OCI's ``index.json``, and tools
differ in which of the two they read: here both must describe the same images, or none is taken. Every blob
has the digest of its name, every layer the ``diff_id`` that the configuration lists, every document the size
that its descriptor gives.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import ImageError
from .documents import parse_json, sha256

NAME = "org.opencontainers.image.ref.name"
"""The annotation of an index's entry that holds the image's name."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_NAMED_BY_HASH = re.compile(r"(?:.*/)?([0-9a-f]{64})(?:\.json)?")
_BLOB = re.compile(r"blobs/sha256/([0-9a-f]{64})")
_DEEPEST = 4
"""Indexes inside indexes; tools write two."""

_SECTION = {
    "Cmd": list,
    "Entrypoint": list,
    "Env": list,
    "Healthcheck": dict,
    "Labels": dict,
    "OnBuild": list,
    "Shell": list,
    "StopSignal": str,
    "User": str,
    "Volumes": dict,
    "WorkingDir": str,
}


@dataclass(frozen=True, slots=True)
class Part:
    """A file of the archive: ``digest`` and ``size`` of its bytes, ``diff_id`` of the tar in a layer."""

    digest: str
    size: int
    diff_id: str = ""


@dataclass(frozen=True, slots=True)
class Described:
    """One image. ``layers`` are names of files of the archive, the lowest first."""

    names: tuple[str, ...]
    config: Mapping[str, Any]
    """The section of the configuration that says how programs are run."""
    config_digest: str
    layers: tuple[str, ...]
    manifest_digest: str = ""
    """Digest of an OCI manifest; empty without one."""


class Archive:
    """The parts of an archive by name. ValueError, KeyError, TypeError: they do not fit together."""

    def __init__(
        self, parts: Mapping[str, Part], documents: Mapping[str, bytes], links: Mapping[str, str]
    ) -> None:
        self._parts, self._documents, self._links = parts, documents, links

    def image(self, where: str, name: str | None) -> Described:
        """Return the one image, or that of a name. Raises `ImageError` when there is not exactly one."""
        if not self._parts:
            raise ImageError(f"{where}: cannot be read: it is empty", hint="write the archive again")
        for path, part in self._parts.items():
            if (match := _BLOB.fullmatch(path)) and part.digest != f"sha256:{match[1]}":
                raise ImageError(
                    f"{where}: {path} does not have the bytes that its name says: {part.digest}",
                    hint="write the archive again; if it stays so, somebody has changed it",
                )
        docker = list(self._docker()) if "manifest.json" in self._documents else None
        oci = list(self._oci()) if "index.json" in self._documents else None
        if docker is not None and oci is not None and self._told(docker) != self._told(oci):
            raise ImageError(
                f"{where}: its manifest.json and its index.json describe different images",
                hint="some tools read the one, some the other: use neither, and write the archive again",
            )
        found = docker or oci or []
        wanted = [each for each in found if name is None or name in each.names]
        if len(self._told(wanted)) != 1:
            names = sorted({n for each in found for n in each.names if n})
            raise ImageError(
                f"{where} holds {len(wanted)} images{f' called {name}' if name else ''}, not one",
                hint=f"it has: {', '.join(names) or 'none'}; name one behind a #, as in archive.tar#NAME",
            )
        same = [each for each in (oci or ()) if each.config_digest == wanted[0].config_digest]
        others = [
            each for each in (oci or ()) if name is not None and name in each.names and each not in same
        ]
        if others:
            raise ImageError(f"{where}: its manifest.json and its index.json call different images {name}")
        return replace(wanted[0], manifest_digest=same[0].manifest_digest if same else "")

    def _told(self, images: list[Described]) -> set[tuple[str, ...]]:
        return {(i.config_digest, *(self._parts[y].diff_id for y in i.layers)) for i in images}

    def _docker(self) -> Iterator[Described]:
        for entry in _typed(parse_json(self._documents["manifest.json"]), list):
            _one_meaning(entry, "Config", "Layers", "RepoTags")
            names = tuple(_strings(entry.get("RepoTags") or []))
            layers = tuple(self._at(layer) for layer in _strings(entry["Layers"]))
            yield self._held(names, self._at(_typed(entry["Config"], str)), layers)

    def _oci(self) -> Iterator[Described]:
        yield from self._below(parse_json(self._documents["index.json"]), 0)

    def _below(self, index: Mapping[str, Any], depth: int) -> Iterator[Described]:
        if depth > _DEEPEST:
            raise ValueError(f"indexes lie inside each other, {depth} deep")
        _one_meaning(index, "manifests")
        for entry in _typed(index["manifests"], list):
            path = _blob(entry)
            if depth and path not in self._documents:
                continue  # of another platform, which the archive was written without
            manifest = parse_json(self._documents[path])
            self._sized(entry, path)
            if "manifests" in manifest:
                yield from self._below(manifest, depth + 1)
            elif _typed(entry.get("platform") or {}, dict).get("os") != "unknown":  # an attestation
                _one_meaning(manifest, "config", "layers")
                annotations = entry.get("annotations") or {}
                names = (str(annotations.get(NAME, "")), str(entry["digest"]))
                layers = _typed(manifest["layers"], list)
                for each in (manifest["config"], *layers):
                    self._sized(each, _blob(each))
                config, below = _blob(manifest["config"]), tuple(_blob(layer) for layer in layers)
                yield replace(self._held(names, config, below), manifest_digest=names[1])

    def _held(self, names: tuple[str, ...], config: str, layers: tuple[str, ...]) -> Described:
        """Return an image whose layers are those of its configuration."""
        digest = sha256(self._documents[config])
        match = _NAMED_BY_HASH.fullmatch(config)
        if match and digest != f"sha256:{match[1]}":
            raise ValueError(f"{config} has the bytes of {digest}")
        document = parse_json(self._documents[config])
        _one_meaning(document, "config", "rootfs", "os", "architecture")
        wanted = _strings(_typed(document["rootfs"], dict)["diff_ids"])
        found = [self._parts[layer].diff_id for layer in layers]
        if found != wanted:
            raise ValueError("its layers are not those that its configuration lists")
        section = config_section(document.get("config"))
        return Described(names, with_platform(section, document, "os", "architecture"), digest, layers)

    def _at(self, name: str) -> str:
        """Return the file that a name leads to."""
        name = posixpath.normpath(name)
        return self._links.get(name, name)

    def _sized(self, descriptor: Mapping[str, Any], path: str) -> None:
        size = self._parts[path].size
        if "size" in descriptor and descriptor["size"] != size:
            raise ValueError(f"{path} has {size} bytes, not {str(descriptor['size'])[:40]}")


def _blob(descriptor: Mapping[str, Any]) -> str:
    _one_meaning(descriptor, "annotations", "digest", "mediaType", "platform", "size")
    _one_meaning(descriptor.get("platform") or {}, "architecture", "os", "variant")
    digest: str = _typed(descriptor["digest"], str)
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"{digest[:80]!r} is not a sha256 digest")
    return "blobs/" + digest.replace(":", "/")


PLATFORM = "platform"
"""Key of the image's platform, which the configuration has beside the section."""


def with_platform(section: Any, document: Mapping[str, Any], *keys: str) -> Any:
    """Return a section with the platform of its document: operating system and architecture."""
    parts = [str(document[key]) for key in keys if document.get(key)]
    return {**section, PLATFORM: "/".join(parts)} if parts and isinstance(section, dict) else section


def config_section(found: Any) -> Mapping[str, Any]:
    """Return the section of a configuration that says how programs are run. Raises ValueError, TypeError."""
    section: dict[str, Any] = _typed(found or {}, dict)
    _one_meaning(section, *_SECTION)
    for key, kind in _SECTION.items():
        if section.get(key) is not None:
            value = _typed(section[key], kind)
            _strings(value if kind is list else value.values() if key == "Labels" else ())
    return section


def _one_meaning(table: Mapping[str, Any], *keys: str) -> None:
    """Raise ValueError for a key in another case: tools written in Go would take it, and others not."""
    known = {key.casefold(): key for key in keys}
    for key in table:
        if known.get(key.casefold(), key) != key:
            raise ValueError(f"{key} is written {known[key.casefold()]}")
    if "manifests" in table and ("layers" in table or "config" in table):
        raise ValueError("a document is a manifest and an index in one")


def _typed(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{str(value)[:80]!r} is not a {kind.__name__}")
    return value


def _strings(values: Any) -> list[str]:
    return [_typed(value, str) for value in values]
