"""The image store of the embedded engine: an OCI layout (image-spec, image-layout.md) that other tools read.

An image is known by its digest; a name is a line of ``index.json``. Blobs are written before any line that
needs them, and the index is replaced as a whole. One damaged image is no obstacle to the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ImageError, StorageError
from ..host.home import atomic_write, storage_errors
from ..host.host import Host
from ..host.verified import read_kept
from ..request.reference import NAME_PART
from .archive_manifest import NAME
from .blobs import Blobs, damaged, fault_of, refuse_damaged
from .documents import ImageDocuments, manifest_entry, parse_json, sha256
from .extract_file import file_of_layers
from .file_tree import ImageTree, read_tree
from .image_index import RECOVERED, ImageIndex
from .merge_layers import Keep
from .stream import layout_members
from .tar_fields import LayerRefused

_MOST_DOCUMENT = 64 << 20
"""Of a manifest or a configuration; registries take 4 MiB."""

_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d+)?/)?"
_REFERENCE = re.compile(rf"{_HOST}{NAME_PART}(?:/{NAME_PART})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?")
_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{7,64})")


@dataclass(frozen=True, kw_only=True, slots=True)
class Image:
    """An image of the store."""

    digest: str
    names: tuple[str, ...]
    """Its names, sorted; none for a candidate."""
    size: int
    """Bytes of its compressed layers and documents."""
    labels: Mapping[str, str]
    recovered: bool = False
    """Whether it lost its names with a damaged index, so that `clean` keeps it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DamagedImage:
    """An image of the store whose manifest or configuration is damaged, missing or unreadable."""

    digest: str
    names: tuple[str, ...]
    reason: str
    unreadable: bool = False
    """Whether the disk does not give it, which may pass."""


def lowest_below(layers: Sequence[str], others: Mapping[str, Sequence[str]]) -> str | None:
    """Return the image whose layers are the base of another; of several, the one with the fewest layers."""
    under = [
        (len(below), name)
        for name, below in others.items()
        if 0 < len(below) < len(layers) and list(layers[: len(below)]) == list(below)
    ]
    return min(under)[1] if under else None


def image_name(text: str) -> str:
    """Return a name with its tag, ``latest`` where it has none. Raises `ImageError` on a bad name."""
    if not _REFERENCE.fullmatch(text) or len(text) > 255:
        raise ImageError(
            f"{text!r} is not an image name",
            hint="lower-case letters, digits, and . _ - between them, as in team/torch:2.4.1-cu121",
        )
    return text if ":" in text.rpartition("/")[2] else f"{text}:latest"


class ImageStore:
    """The images of a `Home`."""

    def __init__(self, host: Host) -> None:
        self._host, self.home, self.console = host, host.home, host.console
        self.folder = host.home.folder("oci")
        self._blobs = Blobs(host.home)
        self._index = ImageIndex(self.folder, host.console)

    def blob(self, digest: str) -> Path:
        """Where the blob of a digest is."""
        return self._blobs.path(digest)

    def add(self, image: ImageDocuments) -> str:
        """Add an unnamed image whose layers are in the store; return its digest."""
        for document in (image.config, image.manifest):
            # Also where one is: a machine that stopped may have left it too short.
            atomic_write(self.blob(sha256(document)), document, mode=0o444, sync=False)
        entry = manifest_entry(image.digest, len(image.manifest))

        def change(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return entries if any(e["digest"] == image.digest for e in entries) else [*entries, entry]

        self._change(change)
        return image.digest

    def parent_of(self, image: Image) -> Image | None:  # noqa: ARG002 -- one contract for all engines
        """Return None: all images here are reprobuild's own, and start from no other."""
        return None

    def name(self, digest: str, name: str) -> None:
        """Name an image; another image loses that name. Only tag.py calls this."""
        known = self.find(digest)
        size = self.blob(known.digest).stat().st_size

        def change(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
            # The image that loses the name stays as one without.
            for entry in entries:
                if entry.get("annotations", {}).get(NAME) == name:
                    del entry["annotations"]
            kept = [e for e in entries if e["digest"] != known.digest or NAME in e.get("annotations", {})]
            return [*kept, manifest_entry(known.digest, size, {NAME: name})]

        self._change(change)

    def images(self) -> list[Image]:
        """Return all images but those that are damaged, those with a name first, by name."""
        images, _ = self._examined()
        return sorted(images, key=lambda image: (not image.names, image.names, image.digest))

    def damaged_images(self) -> list[DamagedImage]:
        """Return the images whose manifest or configuration is damaged or missing."""
        return self._examined()[1]

    def find(self, reference: str) -> Image:
        """Return the image of a name, a digest, or seven or more digits of it. Raises `ImageError`.

        No document of another image is read, so that it takes as long in a store of hundreds.
        """
        names = self._names()
        digest = _found(reference, names)
        return self._image(digest, names[digest])

    def manifest(self, digest: str) -> Mapping[str, Any]:
        """Return the manifest of an image. Raises `ImageError` where it is damaged."""
        return self._document(digest)

    def config(self, digest: str) -> Mapping[str, Any]:
        """Return the configuration of an image."""
        return self._document(self.manifest(digest)["config"]["digest"])

    def layers(self, digest: str) -> list[tuple[Path, str]]:
        """Return the layers of an image, lowest first: blob and digest of the tar in it."""
        blobs = [self.blob(layer["digest"]) for layer in self.manifest(digest)["layers"]]
        return list(zip(blobs, self.config(digest)["rootfs"]["diff_ids"], strict=True))

    def tree(self, digest: str, where: str, keep: Keep) -> ImageTree:
        """Return the files of an image; see `protocols.Images`."""
        try:
            with storage_errors(self.folder):
                return read_tree(layout_members(self.folder, digest), where, keep=keep)
        except (ImageError, StorageError):
            self._refuse_damaged(digest)
            raise

    def file(self, digest: str, path: str) -> bytes | None:
        """Return the content of one file of an image; see `protocols.Images`."""
        try:
            return file_of_layers((blob for blob, _ in reversed(self.layers(digest))), path)
        except (LayerRefused, OSError) as error:
            self._refuse_damaged(digest)
            raise damaged(digest, str(error)) from None

    def remove(self, reference: str) -> str:
        """Take away a name, or with a digest the image with all its names; return the image's digest.

        Blobs go with `clean`. Raises `ImageError`, but not for an image that is damaged.
        """
        names = self._names()
        digest = _found(reference, names)
        name = reference if reference in names[digest] else f"{reference}:latest"

        def change(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
            if name in names[digest]:
                return [e for e in entries if e.get("annotations", {}).get(NAME) != name]
            return [e for e in entries if e["digest"] != digest]

        self._change(change)
        return digest

    def drop_unnamed(self) -> list[str]:
        """Take away all images without a name, but those that lost theirs by damage; return their digests."""
        dropped: list[str] = []
        if not self._names():  # a full disk may have no room for an index
            return dropped

        def change(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
            named = {e["digest"] for e in entries if {NAME, RECOVERED} & e.get("annotations", {}).keys()}
            dropped.extend(sorted({e["digest"] for e in entries} - named))
            return [e for e in entries if e["digest"] in named]

        self._change(change)
        return dropped

    def reset(self) -> None:
        """Take away all images, also when the index is damaged."""
        self._index.reset()

    def used_blobs(self) -> set[str]:
        """Return the digests of all blobs that an image needs, of those that are not damaged.

        Raises `StorageError` for an image that cannot be read: what it needs is not known.
        """
        used: set[str] = set()
        images, bad = self._examined()
        for each in bad:
            if each.unreadable:
                raise StorageError(
                    each.reason, hint=f"`reprobuild remove {each.digest[7:19]}` drops the image"
                )
        for image in images:
            manifest = self.manifest(image.digest)
            used |= {image.digest, manifest["config"]["digest"], *(y["digest"] for y in manifest["layers"])}
        return used

    def drop_blobs(self, failures: list[StorageError]) -> int:
        """Remove the blobs that no image needs, named or not; return the bytes freed."""
        return self._blobs.keep_only(self.used_blobs(), failures)

    def _examined(self) -> tuple[list[Image], list[DamagedImage]]:
        images, bad = list[Image](), list[DamagedImage]()
        for digest, names in self._names().items():
            try:
                image = self._image(digest, names)
                self.config(digest)
            except ImageError as error:
                bad.append(DamagedImage(digest=digest, names=tuple(sorted(names)), reason=error.message))
            except StorageError as error:
                own = tuple(sorted(names))
                bad.append(DamagedImage(digest=digest, names=own, reason=error.message, unreadable=True))
            else:
                images.append(image)
        return images, bad

    def _names(self) -> dict[str, list[str]]:
        """Return the digests of all images, each with its names; an empty name for one that lost them."""
        names: dict[str, list[str]] = {}
        for entry in self._index.entries():
            found, annotations = names.setdefault(entry["digest"], []), entry.get("annotations", {})
            if name := annotations.get(NAME):
                found.append(name)
            elif RECOVERED in annotations:
                found.append("")
        return names

    def _image(self, digest: str, names: Sequence[str]) -> Image:
        manifest = self.manifest(digest)
        size = manifest["config"]["size"] + sum(layer["size"] for layer in manifest["layers"])
        labels = manifest.get("annotations", {})
        own = tuple(sorted(filter(None, names)))
        return Image(digest=digest, names=own, size=size, labels=labels, recovered="" in names)

    def _document(self, digest: str) -> Mapping[str, Any]:
        path = self.blob(digest)
        with storage_errors(path):
            try:
                data = read_kept(path, _MOST_DOCUMENT)
            except FileNotFoundError:
                raise damaged(digest, "it is missing") from None
        if sha256(data) != digest:
            raise damaged(digest, fault_of(path) or "its bytes do not match its name")
        try:
            document: Mapping[str, Any] = parse_json(data)
        except ValueError as error:
            raise damaged(digest, str(error)) from None
        return document

    def _refuse_damaged(self, digest: str) -> None:
        """Raise `ImageError` for a blob of an image that is damaged, and remove it."""
        refuse_damaged(*(blob for blob, _ in self.layers(digest)))

    def _change(self, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
        with self._host.home.lock("images", self._host.console), storage_errors(self.folder):
            entries = change(self._index.entries())
            entries.sort(key=lambda e: (e["digest"], e.get("annotations", {}).get(NAME, "")))
            self._index.write(entries)


def refuse_candidate(image: Image) -> None:
    """Raise `ImageError` for an image without a name, before it gets one elsewhere."""
    if not image.names:  # it need not have passed
        raise ImageError(
            f"{image.digest[:19]} is a candidate: an image gets a name, here or elsewhere, when it has passed"
            " its self-test",
            hint="`reprobuild image` tests it and names it",
        )


def _found(reference: str, names: Mapping[str, Sequence[str]]) -> str:
    """Return the digest that a name, a digest or its start means. Raises `ImageError`."""
    if match := _DIGEST.fullmatch(reference):
        found = [digest for digest in names if digest.startswith(f"sha256:{match[1]}")]
        if len(found) > 1:
            raise ImageError(f"{reference} is the start of {len(found)} digests", hint="give more digits")
        if found:
            return found[0]
    for digest, own in names.items():
        if reference and (reference in own or f"{reference}:latest" in own):
            return digest
    there = sorted(min(filter(None, own)) for own in names.values() if any(own))
    hint = f"there are: {', '.join(there)}" if there else "`reprobuild image --cuda 12.1` makes one"
    if re.match(r"(localhost|[^/.][^/]*[.:][^/]*)/", reference):
        hint = f"`docker pull` or `podman pull` fetches it from a registry, for these engines; here {hint}"
    raise ImageError(f"no image {reference!r}", hint=hint)
