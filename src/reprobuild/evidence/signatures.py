"""Statements ↔ sigstore bundles, signed with a key of one's own: a DSSE envelope and the key's hint.

The format is sigstore's bundle 0.3 (https://github.com/sigstore/protobuf-specs, sigstore_bundle.proto), which
cosign and `@sigstore/verify` read. A statement without a signature is kept as it is, an in-toto statement.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import EvidenceError
from ..host import process
from ..host.home import open_regular
from ..oci.documents import DOCUMENT_LIMIT, parse_json
from .statements import Statement, read_statement

if TYPE_CHECKING:
    from securesystemslib.signer import Key, Signer, SSlibKey

BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
IN_TOTO = "application/vnd.in-toto+json"

_KEY_BYTES = 64 << 10
_COMMAND_SECONDS = 120.0
_SUPPORTED = "expected an Ed25519 or ECDSA P-256 key as PEM"


@dataclass(frozen=True, slots=True)
class Document:
    """A statement as it is kept and sent, and who signed it."""

    statement: Statement
    signers: frozenset[str]
    """The IDs of those given keys whose signatures fit."""
    signed: bool
    """Whether there are signatures at all."""


def read_public_key(path: Path) -> Key:
    """Read a public key, as `openssl pkey -pubout` writes it. Raises `EvidenceError`."""
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 -- who signs nothing need not wait
    from cryptography.hazmat.primitives.serialization import load_pem_public_key  # noqa: PLC0415

    data = _read(path)
    if b"PRIVATE KEY" in data:
        raise EvidenceError(
            f"{path}: a private key where a public one is meant",
            hint=f"`openssl pkey -in {path} -pubout -out public.pem` writes the public one",
        )
    try:
        return _public(load_pem_public_key(data), path)
    except (ValueError, UnsupportedAlgorithm):
        raise EvidenceError(f"{path}: not a valid public key: {_SUPPORTED}") from None


def read_private_key(path: Path, passphrase: Callable[[], str]) -> Signer:
    """Read a private key; ``passphrase`` is asked for one where it is encrypted. Raises `EvidenceError`."""
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415
    from securesystemslib.signer import CryptoSigner  # noqa: PLC0415

    data = _read(path)
    try:
        try:
            key = load_pem_private_key(data, None)
        except TypeError:  # it is encrypted
            key = load_pem_private_key(data, passphrase().encode())
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        if b"ENCRYPTED" in data and "password" in str(error).lower():
            raise EvidenceError(f"{path}: the passphrase is wrong") from None
        raise EvidenceError(f"{path}: not a valid private key: {_SUPPORTED}") from None
    return CryptoSigner(key, _public(key.public_key(), path))


def _public(key: Any, path: Path) -> SSlibKey:
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415
    from securesystemslib.signer import SSlibKey  # noqa: PLC0415

    is_p256 = isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1)
    if not is_p256 and not isinstance(key, Ed25519PublicKey):
        raise EvidenceError(f"{path}: not a key of a supported type: {_SUPPORTED}")
    return SSlibKey.from_crypto(key)


def _read(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            data: bytes = file.read(_KEY_BYTES + 1)
    except OSError as error:
        raise EvidenceError(f"{path}: {error.strerror}") from None
    if len(data) > _KEY_BYTES:
        raise EvidenceError(f"{path}: not a key: it has more than {_KEY_BYTES:,} bytes")
    return data


class CommandSigner:
    """Signs by a command of the user's own (a KMS, a PKCS#11 token): bytes in, the signature's bytes out.

    What it gives is held against the public key at once.
    """

    def __init__(self, command: Sequence[str], public: Key) -> None:
        self._command, self.public_key = command, public

    def sign(self, payload: bytes) -> Any:
        """Return the signature of some bytes. Raises `EvidenceError`."""
        from securesystemslib.exceptions import UnverifiedSignatureError  # noqa: PLC0415
        from securesystemslib.signer import Signature  # noqa: PLC0415

        done = process.run(self._command, stdin=payload, timeout=_COMMAND_SECONDS, check=False)
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip()
            raise EvidenceError(f"{self._command[0]}: ended with {done.returncode}: {said}")
        signature = Signature(self.public_key.keyid, done.stdout.hex())
        try:
            self.public_key.verify_signature(signature, payload)
        except UnverifiedSignatureError:
            raise EvidenceError(
                f"{self._command[0]}: its output is not a signature by the given public key",
                hint="it gets the bytes to sign on standard input, and writes the signature's bytes",
            ) from None
        return signature


def sign(statement: bytes, signer: Signer | CommandSigner | None) -> bytes:
    """Return the document of a statement: a bundle with its signature, or without a signer the statement."""
    if signer is None:
        return statement
    from securesystemslib.dsse import Envelope  # noqa: PLC0415

    envelope = Envelope(statement, IN_TOTO, {})
    signature = signer.sign(envelope.pae())
    bundle = {
        "mediaType": BUNDLE,
        "verificationMaterial": {"publicKey": {"hint": signature.keyid}, "tlogEntries": []},
        "dsseEnvelope": {
            "payload": base64.b64encode(statement).decode(),
            "payloadType": IN_TOTO,
            "signatures": [
                {
                    "keyid": signature.keyid,
                    "sig": base64.b64encode(bytes.fromhex(signature.signature)).decode(),
                }
            ],
        },
    }
    return (json.dumps(bundle, sort_keys=True, separators=(",", ":")) + "\n").encode()


def statement_in(document: bytes) -> bytes:
    """Return the bytes of the statement in a document, whoever signed it. Raises `EvidenceError`."""
    return _opened(document)[0]


def is_signed(document: bytes) -> bool:
    """Whether a document has a signature, by whomever. Raises `EvidenceError`."""
    return bool(_opened(document)[1])


def read_document(document: bytes, keys: Sequence[Key]) -> Document:
    """Read a document, which may be a stranger's, and say which keys signed it. Raises `EvidenceError`."""
    from securesystemslib.dsse import Envelope  # noqa: PLC0415
    from securesystemslib.exceptions import UnverifiedSignatureError, VerificationError  # noqa: PLC0415
    from securesystemslib.signer import Signature  # noqa: PLC0415

    payload, signatures = _opened(document)
    pae = Envelope(payload, IN_TOTO, {}).pae()
    signers = set()
    for key in keys:
        for (
            signature
        ) in signatures:  # a key's ID in an envelope is a hint (DSSE, protocol.md), so all are tried
            try:
                key.verify_signature(Signature(key.keyid, signature.hex()), pae)
            except (UnverifiedSignatureError, VerificationError):
                continue
            signers.add(key.keyid)
    return Document(read_statement(payload), frozenset(signers), bool(signatures))


def _opened(document: bytes) -> tuple[bytes, list[bytes]]:
    """Return the statement and the signatures in a document."""
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
    envelope = table.get("dsseEnvelope")
    if not isinstance(envelope, dict) or envelope.get("payloadType") != IN_TOTO:
        raise EvidenceError("it has no envelope with an in-toto statement")
    entries = envelope.get("signatures")
    if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries) or len(entries) > 16:
        raise EvidenceError("dsseEnvelope.signatures: expected a list of at most 16 objects")
    try:
        payload = base64.b64decode(envelope.get("payload", ""), validate=True)
        return payload, [base64.b64decode(entry.get("sig", ""), validate=True) for entry in entries]
    except (binascii.Error, TypeError, ValueError):
        raise EvidenceError("its payload or a signature is not base64") from None
