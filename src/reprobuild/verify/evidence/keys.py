"""Signing keys: read them, sign with them, and match signatures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import UnverifiedSignatureError, VerificationError
from securesystemslib.signer import CryptoSigner, Key, Signature, Signer, SSlibKey

from ...errors import EvidenceError
from ...host import process
from ...host.home import open_regular
from ...host.os_reasons import killed_by

_KEY_BYTES = 64 << 10
_COMMAND_SECONDS = 120.0
_SIGNATURE_BYTES = 1 << 20
_PRIME = 2**255 - 19
_ORDER_8 = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
_SMALL_ORDER = (0, 1, _PRIME - 1, _ORDER_8, _PRIME - _ORDER_8)
"""The coordinates y of Ed25519's points of small order (https://eprint.iacr.org/2020/1244, table 5)."""
_SUPPORTED = "expected an Ed25519 or ECDSA P-256 key as PEM"


def read_public_key(path: Path) -> Key:
    """Read a public key, as `openssl pkey -pubout` writes it. Raises `EvidenceError`."""
    data = _read(path)
    if b"PRIVATE KEY" in data:
        raise EvidenceError(
            f"{path}: a private key: expected a public one",
            hint=f"`openssl pkey -in {path} -pubout -out public.pem` writes the public one",
        )
    if (number := data.count(b"-----BEGIN PUBLIC KEY-----")) > 1:
        raise EvidenceError(f"{path}: has {number} public keys: expected one in each file")
    try:
        return _public(load_pem_public_key(data), path)
    except (ValueError, UnsupportedAlgorithm):
        raise EvidenceError(f"{path}: not a valid public key: {_SUPPORTED}") from None


def read_private_key(path: Path, passphrase: Callable[[], str], origin: str = "") -> Signer:
    """Read a private key; ``passphrase`` is called if it is encrypted. Raises `EvidenceError`.

    ``origin`` says where a wrong passphrase comes from.
    """
    data, encrypted = _read(path), False
    try:
        try:
            key = load_pem_private_key(data, None)
        except TypeError:
            encrypted = True
            key = load_pem_private_key(data, passphrase().encode())
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        # One wrong passphrase in 256 gives what looks decrypted, and is no key.
        if encrypted and not isinstance(error, UnsupportedAlgorithm):
            raise EvidenceError(f"{path}: the passphrase is wrong", hint=origin) from None
        raise EvidenceError(f"{path}: not a valid private key: {_SUPPORTED}") from None
    return CryptoSigner(key, _public(key.public_key(), path))


def _public(key: Any, path: Path) -> SSlibKey:
    is_p256 = isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1)
    if not is_p256 and not isinstance(key, Ed25519PublicKey):
        raise EvidenceError(f"{path}: not a key of a supported type: {_SUPPORTED}")
    if isinstance(key, Ed25519PublicKey) and _is_weak(key):
        raise EvidenceError(f"{path}: not a safe key: anybody can sign for it", hint="make another key pair")
    return SSlibKey.from_crypto(key)


def _is_weak(key: Ed25519PublicKey) -> bool:
    """Whether the point of a key is one of eight that OpenSSL accepts, and that need no private key."""
    coordinate = int.from_bytes(key.public_bytes_raw(), "little") & (1 << 255) - 1
    return coordinate % _PRIME in _SMALL_ORDER


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

    Its signature is verified with the public key at once.
    """

    def __init__(self, command: Sequence[str], public: Key) -> None:
        self._command, self.public_key = command, public

    def sign(self, payload: bytes) -> Signature:
        """Return the signature of some bytes. Raises `EvidenceError`."""
        try:
            done = process.run(
                self._command,
                stdin=payload,
                timeout=_COMMAND_SECONDS,
                limit=_SIGNATURE_BYTES,
                descendants=False,
                check=False,
            )
        except process.ProcessTimeout:
            raise EvidenceError(
                f"{self._command[0]}: gave no signature within {_COMMAND_SECONDS:g} seconds"
            ) from None
        if done.returncode != 0:
            said = process.tail(done.stderr) or killed_by(done.returncode) or "it said nothing"
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


def signature_of(payload: bytes, payload_type: str, signer: Signer | CommandSigner) -> tuple[str, bytes]:
    """Sign a payload as DSSE does; return the key's ID and the signature. Raises `EvidenceError`."""
    found = signer.sign(Envelope(payload, payload_type, {}).pae())
    return found.keyid, bytes.fromhex(found.signature)


def signers_of(
    payload: bytes, payload_type: str, signatures: Sequence[bytes], keys: Sequence[Key]
) -> frozenset[str]:
    """Return the IDs of those keys whose signatures are among some.

    All are tried: a key's ID in an envelope is a hint (DSSE, protocol.md).
    """
    pae = Envelope(payload, payload_type, {}).pae()
    found = set()
    for key in keys:
        for signature in signatures:
            try:
                key.verify_signature(Signature(key.keyid, signature.hex()), pae)
            except (UnverifiedSignatureError, VerificationError):
                continue
            found.add(key.keyid)
    return frozenset(found)
