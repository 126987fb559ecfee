"""Keys and envelopes, with openssl and sigstore's own packages as the other side."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from reprobuild.errors import EvidenceError
from reprobuild.verify.evidence.keys import read_private_key, read_public_key
from reprobuild.verify.evidence.signatures import is_signed, read_document, sign, statement_in
from support.evidence import altered, signed, texts, write_key
from support.node import install, node

STATEMENT = texts()["provenance"]


def pae(statement: bytes) -> bytes:
    """Return what DSSE signs (https://github.com/secure-systems-lab/dsse, protocol.md)."""
    kind = b"application/vnd.in-toto+json"
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(statement), statement)


@pytest.mark.parametrize("kind", ["ed25519", "p256"])
def test_openssl_verifies_what_we_sign(kind: str, tmp_path: Path) -> None:
    key = write_key(tmp_path, "key", kind)
    document = sign(STATEMENT, read_private_key(key, str))
    (tmp_path / "pae").write_bytes(pae(STATEMENT))
    (entry,) = json.loads(document)["dsseEnvelope"]["signatures"]
    (tmp_path / "sig").write_bytes(base64.b64decode(entry["sig"]))
    verify = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", str(key.with_suffix(".pub")), "-rawin"]
    verify += ["-in", str(tmp_path / "pae"), "-sigfile", str(tmp_path / "sig")]
    verify += ["-digest", "sha256"] if kind == "p256" else []
    done = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert "Verified Successfully" in done.stdout, done.stderr


_VERIFY = """
import { createPublicKey } from "crypto";
import { readFileSync } from "fs";
import { bundleFromJSON } from "@sigstore/bundle";
import { Verifier, toSignedEntity, toTrustMaterial } from "@sigstore/verify";

const says = {};
for (const [name, key, text] of JSON.parse(readFileSync("documents.json", "utf8"))) {
  const root = { certificateAuthorities: [], ctlogs: [], timestampAuthorities: [], tlogs: [] };
  const material = toTrustMaterial(root, () => ({ publicKey: createPublicKey(key), validFor: () => true }));
  const verifier = new Verifier(material, { tlogThreshold: 0, ctlogThreshold: 0, timestampThreshold: 0 });
  try {
    verifier.verify(toSignedEntity(bundleFromJSON(JSON.parse(text))));
    says[name] = "good";
  } catch (error) {
    says[name] = error.code ?? error.name;
  }
}
console.log(JSON.stringify(says));
"""


def asked_of_sigstore(cases: Mapping[str, tuple[str, bytes]], folder: Path) -> dict[str, str]:
    """Return what sigstore's own packages say of documents, each with a public key."""
    listed = [(name, key, document.decode()) for name, (key, document) in cases.items()]
    (folder / "documents.json").write_text(json.dumps(listed))
    (folder / "verify.mjs").write_text(_VERIFY)
    install("@sigstore/verify@4.1.3", folder)
    install("@sigstore/bundle@5.0.1", folder)
    says: dict[str, str] = json.loads(node("node", "verify.mjs", folder=folder))
    return says


def changed(document: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """Return a bundle with another part of it changed."""
    bundle = json.loads(document)
    change(bundle)
    return json.dumps(bundle).encode()


def envelope(bundle: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = bundle["dsseEnvelope"]
    return found


def signature(bundle: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = envelope(bundle)["signatures"][0]
    return found


def raw(bundle: dict[str, Any], change: Callable[[bytes], bytes]) -> None:
    signature(bundle)["sig"] = base64.b64encode(change(base64.b64decode(signature(bundle)["sig"]))).decode()


CHANGES: Mapping[str, Callable[[dict[str, Any]], object]] = {
    "no change": lambda b: None,
    "one bit of the signature": lambda b: raw(b, lambda sig: bytes([sig[0], sig[1] ^ 1]) + sig[2:]),
    "its last byte": lambda b: raw(b, lambda sig: sig[:-1] + bytes([sig[-1] ^ 0x80])),
    "a signature cut short": lambda b: raw(b, lambda sig: sig[:-1]),
    "a signature and more": lambda b: raw(b, lambda sig: sig + b"x"),
    "an empty signature": lambda b: signature(b).update(sig=""),
    "zeros": lambda b: raw(b, lambda sig: bytes(len(sig))),
    "ones": lambda b: raw(b, lambda sig: b"\xff" * len(sig)),
    "two zeros as DER": lambda b: raw(b, lambda _: bytes.fromhex("3006020100020100")),
    "no signature": lambda b: envelope(b).update(signatures=[]),
    "another payload": lambda b: envelope(b).update(payload=base64.b64encode(b"{}").decode()),
    "an empty payload": lambda b: envelope(b).update(payload=""),
    "a payload and a blank": lambda b: envelope(b).update(
        payload=base64.b64encode(base64.b64decode(envelope(b)["payload"]) + b" ").decode()
    ),
    "a payload cut short": lambda b: envelope(b).update(payload=envelope(b)["payload"][:-8]),
    "a payload of the signature": lambda b: envelope(b).update(payload=signature(b)["sig"]),
    "another type": lambda b: envelope(b).update(payloadType="application/vnd.in-toto+jsonx"),
    "a type in capitals": lambda b: envelope(b).update(payloadType="application/vnd.In-Toto+json"),
    "an empty type": lambda b: envelope(b).update(payloadType=""),
    "no envelope": lambda b: b.pop("dsseEnvelope"),
    "no payload": lambda b: envelope(b).pop("payload"),
    "no type": lambda b: envelope(b).pop("payloadType"),
    "a number for a payload": lambda b: envelope(b).update(payload=5),
    "a list for an envelope": lambda b: b.update(dsseEnvelope=[]),
    "no material": lambda b: b.pop("verificationMaterial"),
    "another media type": lambda b: b.update(mediaType="application/json"),
}


@pytest.mark.slow
def test_of_a_hostile_bundle_we_count_no_signature_that_sigstore_refuses(tmp_path: Path) -> None:
    cases: dict[str, tuple[str, bytes]] = {}
    ours = set[str]()
    for kind in ("ed25519", "p256"):
        key = write_key(tmp_path, kind, kind)
        document = signed(texts(), key)["test-result"]
        public = key.with_suffix(".pub")
        for name, change in CHANGES.items():
            case, hostile = f"{kind}: {name}", changed(document, change)
            cases[case] = public.read_text(), hostile
            with suppress(EvidenceError):
                if read_document(hostile, [read_public_key(public)]).signers:
                    ours.add(case)
    says = asked_of_sigstore(cases, tmp_path)
    assert len(cases) == 50
    theirs = {name for name, said in says.items() if said == "good"}
    assert {"ed25519: no change", "p256: no change"} <= ours
    assert ours - theirs == set(), says
    assert theirs - ours == set(), says


@pytest.mark.slow
def test_sigstore_verifies_what_we_sign_and_refuses_what_is_altered(tmp_path: Path) -> None:
    cases: dict[str, tuple[str, bytes]] = {}
    foreign = write_key(tmp_path, "foreign").with_suffix(".pub").read_text()
    for kind in ("ed25519", "p256"):
        key = write_key(tmp_path, kind, kind)
        public = key.with_suffix(".pub").read_text()
        documents = signed(texts(), key)
        cases |= {f"{kind} {name}": (public, document) for name, document in documents.items()}
        cases[f"altered {kind}"] = public, altered(documents["sbom"], lambda s: s["predicate"].update(more=1))
        cases[f"foreign {kind}"] = foreign, documents["sbom"]
        cases[f"of another type {kind}"] = public, documents["sbom"].replace(b"in-toto+json", b"other+json")
    says = asked_of_sigstore(cases, tmp_path)
    good = {name for name, said in says.items() if said == "good"}
    assert len(cases) == 12
    assert good == {name for name in cases if name.startswith(("ed25519 ", "p256 "))}, says


_READ = """
import base64, json, sys
from google.protobuf import json_format
from in_toto_attestation.predicates.provenance.v1.provenance_pb2 import Provenance
from in_toto_attestation.predicates.test_result.v0.test_result_pb2 import TestResult
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage
from sigstore_models.bundle.v1 import Bundle

says = {}
for name, text in json.load(sys.stdin).items():
    try:
        bundle = Bundle.from_json(text)
        found = StatementMessage()
        json_format.Parse(base64.b64decode(json.loads(text)["dsseEnvelope"]["payload"]), found)
        statement = Statement.copy_from_pb(found)
        statement.validate()
        predicate = json_format.MessageToDict(statement.pb.predicate)
        for kind, message in (("provenance/v1", Provenance()), ("test-result", TestResult())):
            if kind in statement.pb.predicate_type:
                # Parsing rules of in-toto: fields of one's own are ignored.
                json_format.ParseDict(predicate, message, ignore_unknown_fields=True)
                if kind == "test-result" and message.result not in ("PASSED", "WARNED", "FAILED"):
                    raise ValueError(message.result)
        says[name] = "good"
    except Exception as error:
        says[name] = f"{type(error).__name__}: {error}"
print(json.dumps(says))
"""


@pytest.mark.slow
def test_the_models_of_in_toto_and_sigstore_read_what_we_write_and_refuse_other_types(tmp_path: Path) -> None:
    """Sigstore's and in-toto's own classes, made from their protobuf specifications."""
    documents = signed(texts(), write_key(tmp_path, "team", "p256"))
    cases = dict(documents)
    for name, change in (
        ("digest", lambda s: s["subject"][0].update(digest={})),
        ("type", lambda s: s.update(_type="https://in-toto.io/Statement/v0.1")),
        ("predicate", lambda s: s.update(predicate="none")),
    ):
        cases[f"bad {name}"] = altered(documents["sbom"], change)
    cases["bad tests"] = altered(
        documents["test-result"], lambda s: s["predicate"].update(passedTests="conv2d")
    )
    cases["bad inputs"] = altered(
        documents["provenance"], lambda s: s["predicate"]["buildDefinition"].update(resolvedDependencies=3)
    )
    cases["bad bundle"] = documents["sbom"].replace(b'"payloadType"', b'"payloadTypo"')
    command = [sys.executable, "-m", "uv", "run", "--quiet", "--no-project", "--no-config", "--isolated"]
    for package in ("in-toto-attestation==0.9.3", "sigstore-models==0.0.6"):
        command += ["--with", package]
    said = json.dumps({name: document.decode() for name, document in cases.items()})
    done = subprocess.run(
        [*command, "python", "-c", _READ],
        input=said,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    says = json.loads(done.stdout)
    assert {name for name, verdict in says.items() if verdict == "good"} == documents.keys(), says


@pytest.mark.parametrize("kind", ["ed25519", "p256"])
def test_what_is_signed_counts_for_its_key_alone(kind: str, tmp_path: Path) -> None:
    mine, other = write_key(tmp_path, "mine", kind), write_key(tmp_path, "other", kind)
    public, foreign = (read_public_key(key.with_suffix(".pub")) for key in (mine, other))
    document = sign(STATEMENT, read_private_key(mine, str))
    assert statement_in(document) == STATEMENT
    assert is_signed(document)
    assert read_document(document, [foreign, public]).signers == {public.keyid}
    assert read_document(document, [foreign]).signers == set()
    assert read_document(document, []).signed


def test_a_changed_statement_or_signature_counts_for_nobody(tmp_path: Path) -> None:
    key = write_key(tmp_path, "key")
    public = read_public_key(key.with_suffix(".pub"))
    document = signed(texts(), key)["provenance"]
    assert (
        read_document(altered(document, lambda s: s["predicate"].update(more=1)), [public]).signers == set()
    )
    bundle = json.loads(document)
    raw = bytearray(base64.b64decode(bundle["dsseEnvelope"]["signatures"][0]["sig"]))
    raw[5] ^= 1
    bundle["dsseEnvelope"]["signatures"][0]["sig"] = base64.b64encode(raw).decode()
    assert read_document(json.dumps(bundle).encode(), [public]).signers == set()
    # The ID in an envelope is a hint: a wrong one takes nothing away, and gives nothing.
    bundle = json.loads(document)
    bundle["dsseEnvelope"]["signatures"][0]["keyid"] = "another"
    assert read_document(json.dumps(bundle).encode(), [public]).signers == {public.keyid}


def test_without_a_signer_the_statement_is_kept_as_it_is() -> None:
    assert sign(STATEMENT, None) == STATEMENT
    assert not is_signed(STATEMENT)
    assert not read_document(STATEMENT, []).signed


ENVELOPE = b'{"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "dsseEnvelope": {%s}}'


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json"}',
        ENVELOPE % b'"payload": 3, "payloadType": "application/vnd.in-toto+json", "signatures": []',
        ENVELOPE % b'"payload": "e30=", "payloadType": "text/plain", "signatures": []',
        ENVELOPE
        % b'"payload": "e30=", "payloadType": "application/vnd.in-toto+json", "signatures": [{"sig": "*"}]',
    ],
)
def test_what_is_no_document_is_refused(document: bytes) -> None:
    with pytest.raises(EvidenceError):
        read_document(document, [])
