"""Find an image by the user's name for it: its digests, the documents about it, and its lock.

An image is one of an engine, an archive or layout, or one in a registry, of which only the layer with the
lock is read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import EvidenceError, ImageError, LockError, RegistryError
from ..host.console import size_text
from ..host.home import open_regular, storage_errors
from ..host.host import Host
from ..lock.base_image import MOST_BYTES
from ..lock.model import Lock
from ..lock.reader import parse_lock
from ..oci.documents import DOCUMENT_LIMIT, image_json, parse_json, sha256
from ..oci.extract_file import file_of_layers
from ..oci.file_tree import ImageTree, nothing, tar_digest
from ..oci.merge_layers import Keep
from ..oci.registry.client import Registry, Target
from ..oci.registry.referrers import Unread, referrers
from ..oci.store import ImageStore
from ..oci.tar_fields import LayerRefused
from ..request.image_layout import OWN_FOLDER
from ..request.table import DIGEST, JsonTable, refused_as, shown
from .evidence.document_store import MOST, kept
from .evidence.signatures import BUNDLE, IN_TOTO
from .evidence.statements import Subject
from .find import EngineImage, find_image, is_file, tree_in, tree_of
from .image_labels import read_image_manifest

_LOCK = f"{OWN_FOLDER.lstrip('/')}/pylock.toml"

_FILE_TABLES = ("io.github.containers.zstd-chunked.", "containerd.io/snapshot/")
"""Annotations of zstd:chunked (Podman, CRI-O) and eStargz."""

SUFFIX = ".evidence.jsonl"
"""Behind the path of an archive: the file with the documents about its image, one a line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidenced:
    """An image and the documents about it."""

    name: str
    subject: Subject
    documents: Mapping[str, bytes | Unread]
    """Documents by their name for messages."""
    lock: Lock | None
    """The one in the image; None where the image carries none."""
    kept: EngineImage | None = None
    """None if no engine here has it."""
    registry: Registry | None = None
    platforms: tuple[str, ...] = ()
    """Other platforms in a list, whose images were not examined."""

    def tree(self, host: Host, keep: Keep = nothing) -> ImageTree:
        """Return the files of an image that is not in a registry; see `find.tree_of`. Raises `ImageError`."""
        if self.kept is not None:
            return tree_in(self.kept, self.name, host, keep=keep)
        return tree_of(self.name, host, keep=keep)


def find_evidenced(text: str, files: Sequence[Path], host: Host) -> Evidenced:
    """Return an image and the documents about it, with those in ``files``.

    Raises `ImageError`, `RegistryError`, `EvidenceError`.
    """
    own: dict[str, bytes] = {}
    for path in files:
        own |= read_documents(path)
    if is_file(text):
        return _in_archive(text, own, host)
    target = registry_target(text, host)
    return _in_engine(text, own, host) if target is None else _in_registry(target, own)


def registry_target(text: str, host: Host) -> tuple[Target, str] | None:
    """Return the place in a registry, and the tag or digest there, that a text names; None if it names none.

    ``docker:NAME`` and the like are of engines, and a name of the embedded store is that image.
    """
    name, at, digest = text.partition("@")
    try:
        target = Target.parse(name)
    except ImageError:
        return None
    if not at:
        try:
            find_image(f"oci:{text}", host)
        except ImageError:
            return target, target.tag
        return None
    if not DIGEST.fullmatch(digest):
        raise ImageError(f"{shown(digest)} is not a digest like sha256:…, with 64 lower-case hex digits")
    return target, digest


def read_documents(path: Path) -> Mapping[str, bytes]:
    """Read a file of documents, one a line, or of one. Raises `EvidenceError`."""
    try:
        with open_regular(path) as file:
            data = file.read(MOST * DOCUMENT_LIMIT + 1)
    except OSError as error:
        raise EvidenceError(f"{path}: {error.strerror}") from None
    lines = [line for line in data.split(b"\n") if line.strip()]
    if len(lines) > MOST or len(data) > MOST * DOCUMENT_LIMIT:
        raise EvidenceError(f"{path}: has more than {MOST} documents")
    try:
        parse_json(data)
    except ValueError:
        return {f"{path}:{number}": line for number, line in enumerate(lines, 1)}
    return {str(path): data}


def _in_archive(text: str, own: Mapping[str, bytes], host: Host) -> Evidenced:
    tree = tree_of(text, host, keep=_is_lock)
    beside = Path(text.partition("#")[0] + SUFFIX)
    documents = {**(read_documents(beside) if beside.exists() else {}), **own}
    return Evidenced(
        name=text,
        subject=Subject(*tree.digests),
        documents=documents,
        lock=_lock(tree.kept.get(_LOCK), text),
    )


def _in_engine(text: str, own: Mapping[str, bytes], host: Host) -> Evidenced:
    found = find_image(text, host)
    images, digest = found.engine.images, found.image.digest
    config = str(images.manifest(digest)["config"]["digest"]) if isinstance(images, ImageStore) else ""
    subject = Subject(digest, config)
    return Evidenced(
        name=text,
        subject=subject,
        documents={**kept(host, *filter(None, (digest, config))), **own},
        lock=_lock(images.file(digest, _LOCK), text),
        kept=found,
    )


def _in_registry(found: tuple[Target, str], own: Mapping[str, bytes]) -> Evidenced:
    target, wanted = found
    registry = Registry(target, "pull")
    name = f"{target.host}/{target.repository}{'@' if ':' in wanted else ':'}{wanted}"
    document, platforms = read_image_manifest(registry, wanted, name)
    with refused_as(RegistryError, f"{name}: its manifest is not one of an image"):
        manifest = JsonTable(image_json(document, name))
        config = manifest.table("config").digest("digest")
        layers = [(y.digest("digest"), y.size(most=MOST_BYTES)) for y in manifest.tables("layers")]
    digest = sha256(document)
    attached: dict[str, bytes | Unread] = {}
    for each in referrers(registry, digest, (BUNDLE, IN_TOTO)):
        is_digest, of = DIGEST.fullmatch(each.digest), f", {each.foreign}" if each.foreign else ""
        short = f"referrer {each.digest[:19]}{of}" if is_digest else f"listed as {shown(each.digest)}"
        # One must not take the place of another whose digest begins with the same.
        attached[f"referrer {each.digest}{of}" if short in attached else short] = each.document
    return Evidenced(
        name=name,
        subject=Subject(digest, config),
        documents={**attached, **own},
        lock=_lock(_file_of(registry, layers, name), name),
        registry=registry,
        platforms=platforms,
    )


def verify_layers(found: Evidenced, host: Host) -> None:
    """Verify the layers of an image in a registry against its configuration.

    Whoever names a configuration names what the layers unpack to, and any manifest may point to it. Raises
    `EvidenceError`, `RegistryError`, `StorageError`.
    """
    if found.registry is None:
        return  # an engine or the reader of an archive has done so
    manifest = image_json(found.registry.read_manifest(found.subject.manifest), found.name)
    config = image_json(found.registry.read_blob(found.subject.config), found.name)
    try:
        pairs = list(zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True))
        entries = [(JsonTable(layer, "layer"), diff_id) for layer, diff_id in pairs]
        for table, _ in entries:
            _check_without_table(table, found.name)
        layers = [
            (table.digest("digest"), table.size(most=MOST_BYTES), diff_id) for table, diff_id in entries
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise RegistryError(f"{found.name}: its manifest and configuration do not match: {error}") from None
    total = sum(size for _, size, _ in layers)
    host.console.step(
        "only the configuration is known, not this manifest:"
        f" downloading the layers to verify them, {size_text(total)}"
    )
    with host.home.scratch("layers") as folder, storage_errors(folder):
        for digest, size, diff_id in layers:
            found.registry.save_blob(digest, size, folder / "layer")
            if not diff_id or tar_digest(folder / "layer") != diff_id:
                raise EvidenceError(
                    f"{found.name}: its layer {digest[:19]} is not the one of its configuration",
                    hint="somebody pointed to a configuration that others signed: do not use this image",
                )


def _check_without_table(layer: JsonTable, name: str) -> None:
    """Raise `EvidenceError` for a layer whose files an engine may take by a table and not by its bytes."""
    notes = layer.table("annotations").data if layer.has("annotations") else {}
    if any(key.startswith(_FILE_TABLES) for key in notes):
        raise EvidenceError(
            f"{name}: its layer {str(layer.data.get('digest'))[:19]} has a table of its files, by which some"
            " engines pull it, and nobody compared that with the layer",
            hint="push the image in plain zstd or gzip, as `reprobuild push` does",
        )


def _file_of(registry: Registry, layers: Sequence[tuple[str, int]], name: str) -> bytes | None:
    """Return the lock in the uppermost layer, where reprobuild puts it; None where that is another's.

    Raises `RegistryError` where the registry does not give that layer.
    """
    if not layers or layers[-1][1] > DOCUMENT_LIMIT:
        return None  # larger than what holds reprobuild's own files
    digest, _ = layers[-1]
    with tempfile.TemporaryDirectory(prefix="reprobuild.") as folder:
        blob = Path(folder) / digest[7:]
        blob.write_bytes(registry.read_blob(digest))
        try:
            return file_of_layers([blob], _LOCK)
        except LayerRefused as error:
            raise ImageError(f"{name}: its uppermost layer cannot be read: {error}") from None


def _lock(text: bytes | None, name: str) -> Lock | None:
    try:
        return None if text is None else parse_lock(text.decode("utf-8", "replace"), f"{name}: /{_LOCK}")
    except LockError as error:
        raise ImageError(error.message) from None


def _is_lock(path: str, _size: int) -> bool:
    return path == _LOCK
