"""Convert statements to and from sigstore bundles: a DSSE envelope with a hint of its key.

The format is sigstore's bundle 0.3 (https://github.com/sigstore/protobuf-specs, sigstore_bundle.proto), which
cosign and `@sigstore/verify` read. A statement without a signature is kept as it is, an in-toto statement.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import EvidenceError
from ...oci.documents import DOCUMENT_LIMIT, parse_json
from ...oci.registry.referrers import Unread
from ...request.table import JsonTable, refused_as
from .statements import Statement, read_statement

if TYPE_CHECKING:
    from securesystemslib.signer import Key, Signer

    from .keys import CommandSigner

BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
IN_TOTO = "application/vnd.in-toto+json"
_MOST_SIGNATURES = 16


@dataclass(frozen=True, slots=True)
class Document:
    """A statement as it is stored and sent, with its signers."""

    statement: Statement
    signers: frozenset[str]
    """The IDs of those given keys whose signatures fit."""
    signed: bool
    """Whether there are signatures at all."""


def sign(statement: bytes, signer: Signer | CommandSigner | None) -> bytes:
    """Return the document of a statement: a bundle with its signature, or without a signer the statement."""
    if signer is None:
        return statement
    from .keys import signature_of  # noqa: PLC0415 -- who signs nothing need not load it

    key, signature = signature_of(statement, IN_TOTO, signer)
    bundle = {
        "mediaType": BUNDLE,
        "verificationMaterial": {"publicKey": {"hint": key}, "tlogEntries": []},
        "dsseEnvelope": {
            "payload": base64.b64encode(statement).decode(),
            "payloadType": IN_TOTO,
            "signatures": [{"keyid": key, "sig": base64.b64encode(signature).decode()}],
        },
    }
    return (json.dumps(bundle, sort_keys=True, separators=(",", ":")) + "\n").encode()


def statement_in(document: bytes) -> bytes:
    """Return the bytes of the statement in a document, whoever signed it. Raises `EvidenceError`."""
    return _opened(document)[0]


def is_signed(document: bytes) -> bool:
    """Whether a document has a signature, by whomever. Raises `EvidenceError`."""
    return bool(_opened(document)[1])


def read_document(document: bytes | Unread, keys: Sequence[Key]) -> Document:
    """Read an untrusted document, and determine which keys signed it. Raises `EvidenceError`."""
    from .keys import signers_of  # noqa: PLC0415 -- who verifies nothing need not load it

    payload, signatures = _opened(document)
    signers = signers_of(payload, IN_TOTO, signatures, keys)
    return Document(read_statement(payload), signers, bool(signatures))


def _opened(document: bytes | Unread) -> tuple[bytes, list[bytes]]:
    """Return the statement and the signatures in a document."""
    if isinstance(document, Unread):
        raise EvidenceError(document.reason)
    if len(document) > DOCUMENT_LIMIT:
        raise EvidenceError(f"it has more than {DOCUMENT_LIMIT:,} bytes")
    try:
        table = parse_json(document)
    except ValueError as error:
        raise EvidenceError(f"it is not JSON: {error}") from None
    if not isinstance(table, dict):
        raise EvidenceError("it is not an object of JSON")
    if "_type" in table:
        return document, []
    if table.get("mediaType") != BUNDLE:
        raise EvidenceError(f"it is neither a statement nor a bundle {BUNDLE}")
    with refused_as(EvidenceError, ""):
        JsonTable(table).table("verificationMaterial")  # without which sigstore reads no bundle
        envelope = JsonTable(table).table("dsseEnvelope")
        if envelope.value("payloadType", str) != IN_TOTO:
            raise envelope.bad("payloadType", "it is not an in-toto statement")
        texts = [envelope.value("payload", str)]
        texts += [entry.value("sig", str) for entry in envelope.tables("signatures")]
    if len(texts) > _MOST_SIGNATURES + 1:
        raise EvidenceError(f"it has more than {_MOST_SIGNATURES} signatures")
    try:
        payload, *signatures = [base64.b64decode(text, validate=True) for text in texts]
    except ValueError:
        raise EvidenceError("its payload or a signature is not base64") from None
    return payload, signatures
