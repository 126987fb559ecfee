"""What an image is: its layers and packages by size, its lock, what was tested, and who says so.

Nothing is judged here: `evidence.judgement` does that, with the keys that the user gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..errors import EvidenceError, ImageError
from ..host.console import first_of
from ..lock.base_image import BaseLayer
from ..lock.model import Artifact, Lock
from ..lock.packages import CondaPackage, DebianPackage, PythonPackage
from ..oci.documents import parse_json
from ..oci.store import ImageStore
from ..selftest.report import SelfTestReport
from .evidence.judgement import judge
from .evidence.policy import Policy
from .evidence.signatures import read_document
from .evidence.statements import Kind
from .find_evidence import Evidenced

if TYPE_CHECKING:
    from securesystemslib.signer import Key

_TITLE = "reprobuild: "
"""Before a layer's title in the history of a configuration."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerFact:
    """A layer, the lowest first."""

    title: str
    digest: str
    size: int
    """Bytes, compressed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PackageFact:
    """A locked package."""

    name: str
    version: str
    kind: str
    """``python``, ``source``, ``conda``, ``debian``, ``interpreter`` or ``base``."""
    origin: str
    """The host, repository or archive that its file comes from."""
    size: int
    """Size of its file in bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceFact:
    """A document about the image."""

    place: str
    kind: Kind | None
    """None: unreadable."""
    made: datetime | None
    """By the clock of its author."""
    signers: tuple[str, ...]
    """The IDs of those given keys that signed it."""
    text: str
    """Whether it counts, in words; who signed it is unknown without a key."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Inspected:
    """An image with its packages and documents, as ``inspect`` shows them."""

    name: str
    digest: str
    layers: tuple[LayerFact, ...]
    lock: Lock | None
    packages: tuple[PackageFact, ...]
    """Largest first."""
    evidence: tuple[EvidenceFact, ...]
    report: SelfTestReport | None
    """Of the newest test result about this image that a given key signed, else that anybody wrote."""
    report_is_signed: bool
    """Whether a given key did."""
    rebuilders: tuple[str, ...]
    """The IDs of the given keys whose owners rebuilt it."""
    notes: tuple[str, ...]
    """What is not known, and why."""

    @property
    def size(self) -> int:
        """Bytes of all layers, compressed."""
        return sum(layer.size for layer in self.layers)


def inspect_image(found: Evidenced, keys: Sequence[Key]) -> Inspected:
    """Return what is known of an image. Raises `ImageError`, `RegistryError`."""
    notes: list[str] = []
    layers = _layers(found)
    if not layers:
        notes.append("layers: neither Docker and Podman nor an archive tell their sizes here")
    if found.lock is None:
        notes.append("packages: the image carries no lock in its uppermost layer")
    if found.platforms:
        notes.append(f"images for {first_of(found.platforms)}: only the one for this machine is read")
    judged = judge(found.documents, found.subject, Policy(), datetime.now(UTC), found.lock)
    signed = judge(found.documents, found.subject, Policy(keys=keys), datetime.now(UTC), found.lock)
    unread = found.registry is not None and (signed if keys else judged).by_configuration
    if unread:
        notes.append(
            "layers: evidence names the configuration, to which any manifest can point: `verify` reads them"
        )
    report_is_signed = bool(keys) and signed.report is not None and not unread
    notes += (signed if report_is_signed else judged).unknown
    return Inspected(
        name=found.name,
        digest=str(found.subject),
        layers=layers,
        lock=found.lock,
        packages=() if found.lock is None else _packages(found.lock),
        evidence=tuple(_evidence(found, keys)),
        report=(signed if report_is_signed else judged).report,
        report_is_signed=report_is_signed,
        rebuilders=tuple(sorted(signed.builders)),
        notes=tuple(notes),
    )


def _layers(found: Evidenced) -> tuple[LayerFact, ...]:
    try:
        documents = _documents(found)
        if documents is None:
            return ()
        manifest, config = documents
        entries = [(str(y["digest"]), int(y["size"])) for y in manifest["layers"]]
        if any(size < 0 for _, size in entries):
            raise ValueError("a layer has no size")  # noqa: TRY301 -- all that is wrong ends below
        said = [str(h.get("created_by", "")) for h in config.get("history", ()) if not h.get("empty_layer")]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ImageError(f"{found.name}: its manifest or configuration is damaged: {error}") from None
    titles = said if len(said) == len(entries) else [""] * len(entries)
    return tuple(
        LayerFact(title=title.removeprefix(_TITLE)[:200], digest=digest, size=size)
        for title, (digest, size) in zip(titles, entries, strict=True)
    )


def _documents(found: Evidenced) -> tuple[Any, Any] | None:
    """Return manifest and configuration of an image; None if unknown."""
    if found.registry is not None:
        manifest = parse_json(found.registry.read_manifest(found.subject.manifest))
        return manifest, parse_json(found.registry.read_blob(found.subject.config))
    images = None if found.kept is None else found.kept.engine.images
    if not isinstance(images, ImageStore):
        return None
    return images.manifest(found.subject.manifest), parse_json(images.blob(found.subject.config).read_bytes())


def _packages(lock: Lock) -> tuple[PackageFact, ...]:
    needed = {each.wheel.sha256 for each in lock.build.python} | {each.sha256 for each in lock.build.debian}
    facts = [_package(each) for each in lock.artifacts if each.sha256 not in needed]
    return tuple(sorted(facts, key=lambda fact: (-fact.size, fact.name, fact.version)))


def _package(artifact: Artifact) -> PackageFact:
    origin = urlsplit(artifact.address).hostname or artifact.address.partition(":")[0]
    match artifact.of:
        case PythonPackage(name=name, version=version, source=source):
            kind = "python" if source is None else "source"
        case CondaPackage(name=name, version=version):
            kind = "conda"
        case DebianPackage(name=name, version=version):
            kind = "debian"
        case BaseLayer(digest=version):
            name, kind, origin = "base image", "base", artifact.address.partition("@")[0]
        case standalone:
            name, version, kind = "python", standalone.version, "interpreter"
    return PackageFact(name=name, version=version, kind=kind, origin=origin, size=artifact.size)


def _evidence(found: Evidenced, keys: Sequence[Key]) -> Iterator[EvidenceFact]:
    for place, data in found.documents.items():
        kind, made, signers = None, None, tuple[str, ...]()
        try:
            document = read_document(data, keys)
            kind, made = document.statement.kind, document.statement.made
            signers = tuple(sorted(document.signers))
            if not document.statement.subjects & found.subject.digests:
                text = f"about another image, {', '.join(sorted(document.statement.subjects))[:160]}"
                signers = ()
            elif signers:
                text = f"signed by {', '.join(signer[:12] for signer in signers)}"
            elif document.signed:
                text = "signed by none of the given keys" if keys else "signed; --key says by whom"
            else:
                text = "unsigned: the word of whoever wrote it"
        except EvidenceError as error:
            text = f"cannot be read: {error.message}"
        yield EvidenceFact(place=place, kind=kind, made=made, signers=signers, text=text)


def origins(packages: Sequence[PackageFact]) -> list[tuple[str, str, int, int]]:
    """Return kind, origin, number and bytes of packages, the largest first."""
    totals: dict[tuple[str, str], tuple[int, int]] = {}
    for each in packages:
        count, size = totals.get((each.kind, each.origin), (0, 0))
        totals[each.kind, each.origin] = count + 1, size + each.size
    rows = [(kind, origin, count, size) for (kind, origin), (count, size) in totals.items()]
    return sorted(rows, key=lambda row: (-row[3], row[:2]))
