"""Create in-toto statements about an image from its lock and report, and validate those of others. Pure.

A statement (https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md) names its subjects by
digest. There are two: the image's manifest, and its configuration, which stays what it is where the layers
are compressed in another way, and by which Docker and Podman know an image. The same image, report and time
give the same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, cast, get_args
from urllib.parse import quote

from .. import __version__
from ..errors import EvidenceError, SelfTestError
from ..lock.bill import Facts, cyclonedx
from ..lock.model import Lock
from ..oci.documents import parse_json
from ..selftest.report import SelfTestReport

Kind = Literal["sbom", "provenance", "test-result", "rebuild"]

PREDICATES: Mapping[Kind, str] = {
    "sbom": "https://cyclonedx.org/bom",
    "provenance": "https://slsa.dev/provenance/v1",
    "test-result": "https://in-toto.io/attestation/test-result/v0.1",
    "rebuild": "https://slsa.dev/verification_summary/v1",
}
"""Predicate type of each kind; a rebuild is a SLSA verification summary."""

BUILD_TYPE = "https://reprobuild.dev/build/lock/v1"
"""How the external parameters of our provenance are to be read: docs/evidence.md."""
REBUILT = "REPROBUILD_IDENTICAL"
"""The level of a verification summary whose verifier built the same bytes from the lock."""

STATEMENT = "https://in-toto.io/Statement/v1"
LARGEST = 3 << 20
"""Bytes of a statement: in base64 a document of 4 MiB, which is what registries give whole."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_TIME = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, slots=True)
class Subject:
    """The digests that an image has."""

    manifest: str
    """``sha256:…`` of its manifest; empty where only the configuration is known."""
    config: str
    """``sha256:…`` of its configuration: Docker's and Podman's image ID."""

    @property
    def digests(self) -> frozenset[str]:
        """Return both, those that are known."""
        return frozenset(filter(None, (self.manifest, self.config)))

    def __str__(self) -> str:
        """Return the digest that users see."""
        return self.manifest or self.config


@dataclass(frozen=True, slots=True)
class Statement:
    """What a document says about an image."""

    kind: Kind
    subjects: frozenset[str]
    """``sha256:…`` of what it is about."""
    made: datetime | None
    """By its maker's clock; None where the kind has no time."""
    predicate: Mapping[str, Any]

    @property
    def report(self) -> SelfTestReport:
        """Return the report in a test result. Raises `EvidenceError` if invalid or about another image."""
        table = _table(self.predicate.get("reprobuild"), "predicate.reprobuild")
        try:
            report = SelfTestReport.parse_kept(json.dumps(table.get("report")).encode())
        except SelfTestError as error:
            raise EvidenceError(error.message) from None
        if report.digest not in self.subjects:
            raise EvidenceError(f"its report is about another image, {report.digest or 'none'}")
        outcome = {"passed": "PASSED", "failed": "FAILED", "inconclusive": "WARNED"}[report.verdict]
        if self.predicate.get("result") != outcome:
            raise EvidenceError(f"its result {self.predicate.get('result')!r} is not that of its report")
        return report


def statements(
    lock: Lock,
    report: SelfTestReport,
    subject: Subject,
    made: datetime,
    facts: Mapping[str, Facts] | None = None,
) -> Mapping[Kind, bytes]:
    """Return the statements about an image that was built from a lock and tested, as JSON.

    ``facts``: what the packages' own files say, for the bill of materials.
    """
    predicates: Mapping[Kind, Any] = {
        "sbom": json.loads(cyclonedx(lock, facts)),
        "provenance": _provenance(lock, made),
        "test-result": _test_result(lock, report, made),
    }
    return {kind: statement(kind, subject, predicate) for kind, predicate in predicates.items()}


def statement(kind: Kind, subject: Subject, predicate: Mapping[str, Any]) -> bytes:
    """Return one statement as JSON."""
    named = {"config": subject.config, "manifest": subject.manifest}
    table = {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": d[7:]}} for name, d in sorted(named.items()) if d],
        "predicateType": PREDICATES[kind],
        "predicate": predicate,
    }
    return json.dumps(table, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def rebuilt(subject: Subject, lock: str, made: datetime) -> bytes:
    """Return the statement that a rebuild from the lock with a digest gave the same bytes."""
    predicate = {
        "verifier": {"id": _tool(), "version": {"reprobuild": __version__}},
        "timeVerified": made.strftime(_TIME),
        "resourceUri": f"pkg:oci/image@{quote(subject.manifest)}",
        "policy": {"uri": BUILD_TYPE, "digest": {"sha256": lock.removeprefix("sha256:")}},
        "verificationResult": "PASSED",
        "verifiedLevels": [REBUILT],
    }
    return statement("rebuild", Subject(subject.manifest, ""), predicate)


def _provenance(lock: Lock, made: datetime) -> Mapping[str, Any]:
    """Return SLSA provenance (https://slsa.dev/spec/v1.1/provenance)."""
    own = lock.own_files
    dependencies = [
        {"name": a.filename, "uri": _uri(a.address), "digest": {"sha256": a.sha256}} for a in lock.artifacts
    ]
    return {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {
                "lock": {"name": lock.request.name, "digest": {"sha256": lock.digest[7:]}},
                "platform": lock.platform,
                "profile": lock.request.profile,
            },
            "resolvedDependencies": dependencies,
        },
        "runDetails": {
            "builder": {
                "id": _tool(),
                "version": {"reprobuild": __version__},
                "builderDependencies": [
                    {"name": name, "digest": {"sha256": sha256}}
                    for name, sha256 in sorted(({} if own is None else own.sha256).items())
                ],
            },
            "metadata": {"finishedOn": made.strftime(_TIME)},
        },
    }


def _test_result(lock: Lock, report: SelfTestReport, made: datetime) -> Mapping[str, Any]:
    """Return a test result; the whole report is beside the fields that every reader knows.

    What belongs to one run, and not to the image, is left out: times, memory, and the values of results,
    whose hashes stay.
    """
    bare = replace(
        report,
        checks=tuple(replace(check, values={}, seconds=0.0, traceback="") for check in report.checks),
        seconds=0.0,
        peak_memory_bytes=0,
    )
    names: dict[str, list[str]] = {status: [] for status in ("passed", "failed", "inconclusive", "not-run")}
    for check in report.checks:
        names[check.status].append(check.label)
    return {
        "result": {"passed": "PASSED", "failed": "FAILED", "inconclusive": "WARNED"}[report.verdict],
        "configuration": [
            {"name": "pylock.toml", "digest": {"sha256": lock.digest[7:]}},
            {"name": "selftest.py", "digest": {"sha256": report.program}},
        ],
        "passedTests": names["passed"],
        "warnedTests": [*names["inconclusive"], *names["not-run"]],
        "failedTests": names["failed"],
        "reprobuild": {"schema": 1, "finishedOn": made.strftime(_TIME), "report": bare.to_dict()},
    }


def _tool() -> str:
    return f"pkg:pypi/reprobuild@{__version__}"


def _uri(address: str) -> str:
    """Return an address as a URI: a Debian package has an archive and a path, a layer no scheme."""
    return address if "://" in address else f"pkg:generic/{quote(address, safe='/:@')}"


def read_statement(data: bytes) -> Statement:
    """Read a statement, which may be a stranger's. Raises `EvidenceError`."""
    if len(data) > LARGEST:
        raise EvidenceError(f"it has more than {LARGEST:,} bytes")
    try:
        table = _table(parse_json(data), "it")
    except ValueError as error:
        raise EvidenceError(f"it is not JSON: {error}") from None
    if table.get("_type") != STATEMENT:
        raise EvidenceError("it is not an in-toto statement of version 1")
    found = [kind for kind in get_args(Kind) if PREDICATES[kind] == table.get("predicateType")]
    if not found:
        raise EvidenceError(f"its predicate type is not known: {table.get('predicateType')!r}")
    predicate = _table(table.get("predicate"), "predicate")
    return Statement(found[0], _subjects(table.get("subject")), _made(found[0], predicate), predicate)


def _subjects(value: object) -> frozenset[str]:
    if not isinstance(value, list) or not 0 < len(value) <= 64:
        raise EvidenceError("subject: expected a list of 1 to 64")
    digests = [
        _table(_table(each, "subject").get("digest"), "subject.digest").get("sha256") for each in value
    ]
    if not all(isinstance(digest, str) and _DIGEST.fullmatch(f"sha256:{digest}") for digest in digests):
        raise EvidenceError("subject.digest.sha256: expected 64 lower-case hex digits")
    return frozenset(f"sha256:{digest}" for digest in digests)


def _made(kind: Kind, predicate: Mapping[str, Any]) -> datetime | None:
    match kind:
        case "sbom":
            return None
        case "provenance":
            details = _table(predicate.get("runDetails"), "runDetails")
            text = _table(details.get("metadata"), "runDetails.metadata").get("finishedOn")
        case "test-result":
            text = _table(predicate.get("reprobuild"), "predicate.reprobuild").get("finishedOn")
        case "rebuild":
            text = predicate.get("timeVerified")
    try:
        return datetime.strptime(str(text), _TIME).replace(tzinfo=UTC)
    except ValueError:
        raise EvidenceError(f"its time {text!r} is not like 2026-01-31T12:00:00Z") from None


def _list(value: object, place: str) -> list[Any]:
    if not isinstance(value or [], list):
        raise EvidenceError(f"{place}: expected a list")
    return cast("list[Any]", value or [])


def _table(value: object, place: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise EvidenceError(f"{place}: expected an object")
    return value


def hashes_of(predicate: Mapping[str, Any]) -> frozenset[str]:
    """Return the SHA-256 (hex) of every component in a bill of materials. Raises `EvidenceError`."""
    components = predicate.get("components")
    if not isinstance(components, list):
        raise EvidenceError("components: expected a list")
    found = set()
    for component in components:
        table, hashes = _table(component, "components"), list[Any]()
        references = _list(table.get("externalReferences"), "externalReferences")
        for each in (table, *(each for each in references if isinstance(each, dict))):
            hashes += _list(each.get("hashes"), "hashes")
        for entry in hashes:
            if isinstance(entry, dict) and entry.get("alg") == "SHA-256":
                found.add(str(entry.get("content")))
    return frozenset(found)


def dependencies_of(predicate: Mapping[str, Any]) -> Mapping[str, str]:
    """Return what a provenance says was built from: names by SHA-256. Raises `EvidenceError`."""
    definition = _table(predicate.get("buildDefinition"), "buildDefinition")
    entries = definition.get("resolvedDependencies")
    if not isinstance(entries, list):
        raise EvidenceError("buildDefinition.resolvedDependencies: expected a list")
    tables = [_table(each, "resolvedDependencies") for each in entries]
    return {str(_table(t.get("digest"), "digest").get("sha256")): str(t.get("name")) for t in tables}


def parameters_of(provenance: Statement) -> Mapping[str, Any]:
    """Return what a provenance says was asked for. Raises `EvidenceError`."""
    definition = _table(provenance.predicate.get("buildDefinition"), "buildDefinition")
    return _table(definition.get("externalParameters"), "externalParameters")


def lock_of(statement: Statement) -> str:
    """Return the digest of the lock that a provenance or a test result names. Raises `EvidenceError`."""
    if statement.kind == "provenance":
        digest = _table(_table(parameters_of(statement).get("lock"), "lock").get("digest"), "lock.digest")
        return f"sha256:{digest.get('sha256')}"
    for entry in _list(statement.predicate.get("configuration"), "configuration"):
        if isinstance(entry, dict) and entry.get("name") == "pylock.toml":
            return f"sha256:{_table(entry.get('digest'), 'configuration').get('sha256')}"
    raise EvidenceError("it names no lock")


def program_of(provenance: Statement) -> str | None:
    """Return the SHA-256 of the self-test program that a provenance names."""
    builder = _table(_table(provenance.predicate.get("runDetails"), "runDetails").get("builder"), "builder")
    for entry in _list(builder.get("builderDependencies"), "builderDependencies"):
        if isinstance(entry, dict) and entry.get("name") == "selftest.py":
            return str(_table(entry.get("digest"), "builderDependencies").get("sha256"))
    return None
