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
from ..request.table import JsonTable, Table, TableError, shown
from .documents import IMAGE_TYPES, LIST_TYPES, check_type, parse_json, sha256

NAME = "org.opencontainers.image.ref.name"
"""Annotation of an index's entry with the image's name."""

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
    """The parts of an archive by name. ValueError: they do not fit together."""

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
                    hint="write the archive again; if this happens again, the file was modified",
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
                hint=f"it has: {', '.join(names) or 'none'}; append #NAME, as in archive.tar#NAME",
            )
        same = [each for each in (oci or ()) if each.config_digest == wanted[0].config_digest]
        others = [
            each for each in (oci or ()) if name is not None and name in each.names and each not in same
        ]
        if others:
            raise ImageError(f"{where}: its manifest.json and its index.json call different images {name}")
        return replace(wanted[0], manifest_digest=same[0].manifest_digest if same else "")

    def _told(self, images: list[Described]) -> set[tuple[str, ...]]:
        return {(i.config_digest, *(self._part(y).diff_id for y in i.layers)) for i in images}

    def _docker(self) -> Iterator[Described]:
        name = "manifest.json"
        for entry in JsonTable({name: parse_json(self._documents[name])}).tables(name):
            _one_meaning(entry, "Config", "Layers", "RepoTags")
            names = tuple(entry.texts("RepoTags")) if entry.data.get("RepoTags") else ()
            layers = tuple(self._at(layer) for layer in entry.texts("Layers"))
            yield self._held(names, self._at(entry.value("Config", str)), layers)

    def _oci(self) -> Iterator[Described]:
        yield from self._below(self._document("index.json"), 0)

    def _below(self, index: Table, depth: int) -> Iterator[Described]:
        if depth > _DEEPEST:
            raise ValueError(f"indexes are nested too deeply: {depth} deep")
        _one_meaning(index, "manifests", "mediaType", "schemaVersion")
        check_type(index.data, *LIST_TYPES)
        for entry in index.tables("manifests"):
            path = _blob(entry)
            if depth and path not in self._documents:
                continue  # of another platform, which the archive was written without
            manifest = self._document(path)
            self._sized(entry, path)
            # Some tools go by the type in the list, some by that in the document, some by its keys.
            check_type(entry.data, *(LIST_TYPES if manifest.has("manifests") else IMAGE_TYPES))
            if manifest.has("manifests"):
                yield from self._below(manifest, depth + 1)
            elif _inner(entry, "platform").data.get("os") != "unknown":  # an attestation
                _one_meaning(manifest, "config", "layers", "mediaType", "schemaVersion")
                check_type(manifest.data, *IMAGE_TYPES)
                names = (str(_inner(entry, "annotations").data.get(NAME, "")), entry.digest("digest"))
                config, layers = manifest.table("config"), manifest.tables("layers")
                for each in (config, *layers):
                    self._sized(each, _blob(each))
                found = self._held(names, _blob(config), tuple(map(_blob, layers)))
                yield replace(found, manifest_digest=names[1])

    def _held(self, names: tuple[str, ...], config: str, layers: tuple[str, ...]) -> Described:
        """Return an image whose layers are those of its configuration."""
        document = self._document(config)
        digest = sha256(self._documents[config])
        match = _NAMED_BY_HASH.fullmatch(config)
        if match and digest != f"sha256:{match[1]}":
            raise ValueError(f"{config} has the bytes of {digest}")
        _one_meaning(document, "config", "rootfs", "os", "architecture")
        wanted = document.table("rootfs").texts("diff_ids")
        if [self._part(layer).diff_id for layer in layers] != wanted:
            raise ValueError("its layers are not those that its configuration lists")
        section = config_section(document.data.get("config"))
        return Described(names, with_platform(section, document.data, "os", "architecture"), digest, layers)

    def _document(self, path: str) -> Table:
        if path not in self._documents:
            raise TableError(f"{path}: missing")
        return JsonTable(parse_json(self._documents[path]), path)

    def _part(self, path: str) -> Part:
        if path not in self._parts:
            raise TableError(f"{path}: missing")
        return self._parts[path]

    def _at(self, name: str) -> str:
        """Return the file that a name leads to."""
        name = posixpath.normpath(name)
        return self._links.get(name, name)

    def _sized(self, descriptor: Table, path: str) -> None:
        size = self._part(path).size
        if descriptor.data.get("size", size) != size:
            raise descriptor.bad("size", f"{path} has {size} bytes, not {shown(descriptor.data['size'])}")


def _blob(descriptor: Table) -> str:
    _one_meaning(descriptor, "annotations", "digest", "mediaType", "platform", "size")
    _one_meaning(_inner(descriptor, "platform"), "architecture", "os", "variant")
    return "blobs/" + descriptor.digest("digest").replace(":", "/")


def _inner(table: Table, key: str) -> Table:
    """Return the table of a key; empty if it is missing or null."""
    return JsonTable(table.data.get(key) or {}, table.where(key))


PLATFORM = "platform"
"""Key of the image's platform, beside the section in the configuration."""


def with_platform(section: Any, document: Mapping[str, Any], *keys: str) -> Any:
    """Return a section with the platform of its document: operating system and architecture."""
    parts = [str(document[key]) for key in keys if document.get(key)]
    return {**section, PLATFORM: "/".join(parts)} if parts and isinstance(section, dict) else section


def config_section(found: object) -> Mapping[str, Any]:
    """Return the section of a configuration that says how programs are run. Raises `TableError`."""
    section = JsonTable(found or {}, "config")
    _one_meaning(section, *_SECTION)
    for key, kind in _SECTION.items():
        if section.data.get(key) is None:
            continue
        section.hold(key, kind)
        if kind is list:
            section.texts(key)
        elif key == "Labels":
            for label in section.table(key).data:
                section.table(key).value(label, str)
    return section.data


def _one_meaning(table: Table, *keys: str) -> None:
    """Refuse a key in another case: tools written in Go accept it, and others do not."""
    known = {key.casefold(): key for key in keys}
    for key in table.data:
        if known.get(key.casefold(), key) != key:
            raise TableError(f"{table.where(key)} is written {known[key.casefold()]}")
    if table.has("manifests") and (table.has("layers") or table.has("config")):
        raise table.bad("manifests", "a document is a manifest and an index in one")
