"""Keys, and an image with its lock, report and evidence, of which no layer is ever made."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
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
from reprobuild.render.program import BATTERY, selftest_checks
from reprobuild.selftest.report import SelfTestReport
from reprobuild.verify.evidence.judgement import Judgement, judge
from reprobuild.verify.evidence.keys import read_private_key, read_public_key
from reprobuild.verify.evidence.policy import Policy
from reprobuild.verify.evidence.signatures import sign
from reprobuild.verify.evidence.statements import Kind, Subject, rebuilt, statements
from support.locks import SMALL
from support.reports import a_check, a_report

SUBJECT = Subject("sha256:" + "a" * 64, "sha256:" + "b" * 64)
OTHER = Subject("sha256:" + "c" * 64, "sha256:" + "d" * 64)
MADE = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOW = MADE + timedelta(days=3)

Change = Callable[[dict[str, Any]], None]


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


def whole(checks: Iterable[dict[str, Any]], *, gpu: bool = False) -> list[dict[str, Any]]:
    """Return some checks with all others of this reprobuild's battery, which passed and give nothing."""
    given = list(checks)
    return given + [
        a_check(name=check.label.partition(" ")[0], device=check.device, results={}, values={}, rate=None)
        for check in selftest_checks()
        if check.part == BATTERY and (gpu or check.device == "cpu")
        if (check.label.partition(" ")[0], check.device) not in {(c["name"], c["device"]) for c in given}
    ]


def a_test(*checks: dict[str, Any], subject: Subject = SUBJECT, **changes: Any) -> SelfTestReport:
    """Return the report of the self-test of an image, by this reprobuild's own program."""
    changes = {"program": own_files().sha256["selftest.py"], **changes}
    table = a_report(*whole(checks or (a_check(),), gpu="gpu" in changes), **changes)
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


class Team:
    """A key, its policy, and the documents that it signed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = write_key(folder, "team")
        self.policy = Policy(keys=[read_public_key(self.key.with_suffix(".pub"))])
        self.documents = signed(texts(), self.key)

    def judge(self, lock: Lock | None = None, subject: Subject = SUBJECT, **policy: Any) -> Judgement:
        return judge(self.documents, subject, replace(self.policy, **policy), NOW, lock)

    def resign(self, kind: Kind, change: Change) -> None:
        """Sign a changed statement, as an owner of the key could."""
        table = json.loads(texts()[kind])
        change(table)
        self.documents[kind] = sign(json.dumps(table).encode(), read_private_key(self.key, str))

    def vote(self, name: str, subject: Subject = SUBJECT) -> Any:
        """Add the word of another builder; return its public key."""
        key = write_key(self.folder, name)
        text = rebuilt(subject, a_lock().digest, MADE)
        self.documents[f"rebuild.{name}"] = sign(text, read_private_key(key, str))
        return read_public_key(key.with_suffix(".pub"))
