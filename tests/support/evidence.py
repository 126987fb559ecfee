"""Keys, and an image with its lock, report and evidence, of which no layer is ever made."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from reprobuild.lock.model import Lock
from reprobuild.render.own_files import own_files
from reprobuild.selftest.report import SelfTestReport
from reprobuild.verify.evidence.keys import read_private_key
from reprobuild.verify.evidence.signatures import sign
from reprobuild.verify.evidence.statements import Kind, Subject, statements
from support.locks import SMALL
from support.reports import a_report

SUBJECT = Subject("sha256:" + "a" * 64, "sha256:" + "b" * 64)
OTHER = Subject("sha256:" + "c" * 64, "sha256:" + "d" * 64)
MADE = datetime(2026, 3, 1, 12, tzinfo=UTC)


def write_key(folder: Path, name: str, kind: str = "ed25519", passphrase: str = "") -> Path:
    """Write a private key, and beside it the public one (``.pub``); return the private one's file."""
    makers: Mapping[str, Callable[[], Any]] = {
        "ed25519": ed25519.Ed25519PrivateKey.generate,
        "p256": lambda: ec.generate_private_key(ec.SECP256R1()),
        "p384": lambda: ec.generate_private_key(ec.SECP384R1()),
        "rsa": lambda: rsa.generate_private_key(65537, 2048),
    }
    key = makers[kind]()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.pem"
    how = BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, how))
    path.chmod(0o600)
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    path.with_suffix(".pub").write_bytes(public)
    return path


def a_lock() -> Lock:
    """Return a small lock whose own files are this reprobuild's."""
    return replace(SMALL, own_files=own_files())


def a_test(*checks: dict[str, Any], subject: Subject = SUBJECT, **changes: Any) -> SelfTestReport:
    """Return the report of the self-test of an image, by this reprobuild's own program."""
    table = a_report(*checks, **{"program": own_files().sha256["selftest.py"], **changes})
    return SelfTestReport.parse(json.dumps(table).encode(), digest=subject.manifest)


def texts(
    report: SelfTestReport | None = None,
    subject: Subject = SUBJECT,
    made: datetime = MADE,
    lock: Lock | None = None,
) -> Mapping[Kind, bytes]:
    """Return the statements about an image."""
    return statements(lock or a_lock(), report or a_test(subject=subject), subject, made)


def signed(found: Mapping[Kind, bytes], key: Path) -> dict[str, bytes]:
    """Return statements as documents, signed with a key that is not encrypted."""
    signer = read_private_key(key, str)
    return {str(kind): sign(text, signer) for kind, text in found.items()}


def altered(document: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """Return a bundle whose statement was changed, and whose signatures were not."""
    bundle = json.loads(document)
    statement = json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"]))
    change(statement)
    bundle["dsseEnvelope"]["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()
    return json.dumps(bundle).encode()
