"""Find an image's files by the user's name for it: any engine's name or digest, an archive, a layout."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import get_args

from ..engines.embedded import OciEngine
from ..engines.protocols import EngineName, Recorder
from ..engines.select import choose
from ..errors import HostError, ImageError
from ..host.home import kind_of, open_regular
from ..host.host import Host
from ..oci.archive_manifest import NAME
from ..oci.documents import DOCUMENT_LIMIT, parse_json
from ..oci.file_tree import ImageTree, nothing, read_tree
from ..oci.merge_layers import Keep
from ..oci.store import Image, image_name
from ..oci.stream import archive_members, layout_members
from ..render.labels import LABEL
from ..request.image_layout import OWN_FOLDER

_ENGINES: tuple[EngineName, ...] = get_args(EngineName)


@dataclass(frozen=True, slots=True)
class EngineImage:
    """An image in an engine's store."""

    engine: Recorder
    image: Image


def find_image(text: str, host: Host) -> EngineImage:
    """Return the image of ``docker:NAME``, ``podman:NAME``, ``oci:NAME``, or of a name alone.

    A name alone, or a digest, is looked for in the embedded store, then in Docker and in Podman where they
    answer, which is said: their image may be another than the store had under that name. Raises
    `ImageError`, `HostError`.
    """
    prefix, _, rest = text.partition(":")
    for named in _ENGINES:
        if prefix == named and rest:
            engine = choose(named, host)
            return EngineImage(engine, engine.images.find(rest))
    own = OciEngine(host)
    try:
        return EngineImage(own, own.images.find(text))
    except ImageError as error:
        nowhere = error
    for other in _ENGINES[1:]:
        try:
            engine = choose(other, host)
            found = EngineImage(engine, engine.images.find(text))
        except (HostError, ImageError):
            continue
        host.console.warn(
            f"image {text} is not in the embedded store: using {other}'s image of that name,"
            f" {found.image.digest}; write {other}:{text} if you mean that one"
        )
        return found
    raise nowhere


def find_pulled(name: str, digests: Collection[str], host: Host) -> EngineImage | None:
    """Return the image of a registry as an engine here has it; None if none has the one of these digests.

    A name alone is not enough: it may have been moved in the registry, or here.
    """
    for kind in _ENGINES:
        for text in (name, *sorted(digests)):
            try:
                engine = choose(kind, host)
                found = EngineImage(engine, engine.images.find(text))
            except (HostError, ImageError):
                continue
            if found.image.digest in digests:
                return found
    return None


def parent_manifest(tree: ImageTree, kept: EngineImage | None, host: Host) -> bytes | None:
    """Return the manifest of files of the image that one starts from, out of that image itself.

    That is an image of the embedded store with the same lock, else one below it in its own engine. None where
    neither is here.
    """
    labels, own = tree.config.get("Labels") or {}, OciEngine(host)
    same = (LABEL + "lock", LABEL + "version")
    for image in own.images.images():
        if image.names and all(image.labels.get(name) == labels.get(name) for name in same):
            return _manifest(EngineImage(own, image), host)
    below = kept.engine.images.parent_of(kept.image) if kept is not None else None
    return (
        _manifest(EngineImage(kept.engine, below), host) if kept is not None and below is not None else None
    )


def _manifest(kept: EngineImage, host: Host) -> bytes:
    host.console.step(
        f"files are compared with the manifest of {kept.image.digest[:19]} of {kept.engine.kind}"
    )
    found = kept.engine.images.file(kept.image.digest, f"{OWN_FOLDER.lstrip('/')}/manifest.tsv")
    if found is None:
        raise ImageError(
            f"{kept.image.digest}: has no {OWN_FOLDER}/manifest.tsv, so files cannot be compared with it",
            hint="build that image again",
        )
    return found


def is_file(text: str) -> bool:
    """Whether an image is named by the path of an archive or layout.

    ``docker:…`` and the like name an engine's image, whatever is here. Raises `ImageError` where a file or
    folder has a name that may be an image's, as in a project that brings a folder ``registry.example/team``.
    """
    place = text.partition("#")[0]
    if kind_of(place) is None:
        return False
    prefix, _, rest = text.partition(":")
    if prefix in _ENGINES and rest:
        return False
    if place.endswith(".tar") or not _may_be_an_image(place):
        return True
    raise ImageError(
        f"{place} is a file or folder here, and may be the name of an image",
        hint=f"write ./{place} for what is here; for the image, run the command in another folder",
    )


def _may_be_an_image(text: str) -> bool:
    try:
        image_name(text.partition("@")[0].lower())  # engines take a host in capitals, too
    except ImageError:
        return False
    return True


def tree_of(text: str, host: Host, *, keep: Keep = nothing) -> ImageTree:
    """Return the files of an image: see `find_image`, or a path of an archive or layout (``#NAME``).

    ``keep`` says by path and size whether a file's content is wanted too.
    """
    place, _, name = text.partition("#")
    path = Path(place)
    if not is_file(text):
        return tree_in(find_image(text, host), text, host, keep=keep)
    if kind_of(path) == "folder":
        digest = _digest_in(path, name)
        return read_tree(layout_members(path, digest), text, keep=keep)
    with _archive(path) as file:
        return read_tree(archive_members(file), text, name or None, keep=keep)


def _archive(path: Path) -> BufferedReader:
    try:
        return open_regular(path)
    except OSError as error:
        hint = "name an OCI or Docker archive, an OCI layout, or an image"
        raise ImageError(f"{path}: {error.strerror}", hint=hint) from None


def tree_in(kept: EngineImage, text: str, host: Host, *, keep: Keep = nothing) -> ImageTree:
    """Return the files of an engine's image; ``text`` is the user's reference to it."""
    host.console.step(f"reading {kept.image.digest[:19]} of {kept.engine.kind}")
    tree = kept.engine.images.tree(kept.image.digest, text, keep)
    if tree.replaced:
        paths = ", ".join(f"/{path}" for path in sorted(tree.unknown))
        host.console.step(f"not read, since Docker puts its own there: {paths}")
    if tree.untold:
        names = ", ".join(tree.untold)
        host.console.step(f"not read, since {kept.engine.kind} does not show them: {names}")
    return tree


def verify_unpacked(kept: EngineImage, tree: ImageTree) -> None:
    """Make sure that programs of an image run from its files: the embedded engine keeps them unpacked."""
    if isinstance(kept.engine, OciEngine):
        kept.engine.verify_unpacked(kept.image.digest, tree.files)


def _digest_in(folder: Path, name: str) -> str:
    """Return the digest of the one image of a layout, or of that with a name or digest."""
    try:
        with open_regular(folder / "index.json") as file:
            entries = parse_json(file.read(DOCUMENT_LIMIT))["manifests"]
        names = {
            str((e.get("annotations") or {}).get(NAME) or e["digest"]): str(e["digest"]) for e in entries
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"{Path(error.filename).name}: {error.strerror}" if isinstance(error, OSError) else error
        raise ImageError(
            f"{folder}: not an OCI layout: {reason}", hint="name an archive, a layout, or an image"
        ) from None
    found = {digest for known, digest in names.items() if name in ("", known, digest)}
    if len(found) != 1:
        raise ImageError(
            f"{folder} holds {len(found)} images{f' called {name}' if name else ''}, not one",
            hint=f"it has: {', '.join(sorted(names))}; append #NAME, as in {folder}#NAME",
        )
    return found.pop()
