"""Create in-toto statements about an image from its lock and report, and validate those of others. Pure.

A statement (https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md) names its subjects by
digest. There are two: the image's manifest, and its configuration, which stays what it is where the layers
are compressed in another way, and by which Docker and Podman know an image. The same image, report and time
give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, get_args
from urllib.parse import quote

from ... import __version__
from ...errors import EvidenceError, SelfTestError
from ...lock.bill import Facts, cyclonedx
from ...lock.model import Lock
from ...oci.documents import parse_json
from ...request.table import JsonTable, Table, refused_as, shown
from ...selftest.report import SelfTestReport, Status

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

_DIGESTS = 3
"""The most that one image has: see `Subject`."""

_TIME = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, slots=True)
class Subject:
    """The digests that an image has."""

    manifest: str
    """``sha256:…`` of its manifest; empty where only the configuration is known."""
    config: str
    """``sha256:…`` of its configuration: Docker's and Podman's image ID."""
    pushed: str = ""
    """``sha256:…`` of its manifest in a registry, with the layers compressed in another way."""

    @property
    def digests(self) -> frozenset[str]:
        """Return all that are known."""
        return frozenset(filter(None, (self.manifest, self.config, self.pushed)))

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
    """By the clock of its author; None if the kind has no time."""
    predicate: Mapping[str, Any]

    @property
    def report(self) -> SelfTestReport:
        """Return the report in a test result. Raises `EvidenceError` if invalid or about another image."""
        with refused_as(EvidenceError, ""):
            table = _predicate(self.predicate).table("reprobuild")
        try:
            report = SelfTestReport.parse_kept(json.dumps(table.data.get("report")).encode())
        except SelfTestError as error:
            raise EvidenceError(error.message) from None
        if len(self.subjects) > _DIGESTS:
            raise EvidenceError("it is about several images, and its report about one")
        if report.digest not in self.subjects:
            raise EvidenceError(f"its report is about another image, {report.digest or 'none'}")
        outcome = {"passed": "PASSED", "failed": "FAILED", "inconclusive": "WARNED"}[report.verdict]
        if self.predicate.get("result") != outcome:
            raise EvidenceError(f"its result {self.predicate.get('result')!r} is not that of its report")
        # Other tools read the fields of the standard, and we read the report: both must say the same.
        for key, labels in _tests(report).items():
            if self.predicate.get(key) != labels:
                raise EvidenceError(f"its {key} are not those of its report")
        if _program_in_configuration(self) != report.program:
            raise EvidenceError("its configuration names another self-test program than its report")
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
        "provenance": provenance_of(lock, made),
        "test-result": _test_result(lock, report, made),
    }
    return {kind: statement(kind, subject, predicate) for kind, predicate in predicates.items()}


def statement(kind: Kind, subject: Subject, predicate: Mapping[str, Any]) -> bytes:
    """Return one statement as JSON."""
    named = {"config": subject.config, "manifest": subject.manifest, "pushed": subject.pushed}
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
        "resourceUri": _resource(subject.manifest),
        "policy": {"uri": BUILD_TYPE, "digest": {"sha256": lock.removeprefix("sha256:")}},
        "verificationResult": "PASSED",
        "verifiedLevels": [REBUILT],
    }
    return statement("rebuild", Subject(subject.manifest, ""), predicate)


def provenance_of(lock: Lock, made: datetime) -> Mapping[str, Any]:
    """Return SLSA provenance (https://slsa.dev/spec/v1.1/provenance)."""
    own = lock.own_files
    dependencies = [
        {"name": a.filename, "uri": _uri(a.address), "digest": {"sha256": a.sha256}} for a in lock.artifacts
    ]
    return {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": parameters_for(lock),
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


def parameters_for(lock: Lock) -> Mapping[str, Any]:
    """Return the external parameters of the provenance of an image from a lock."""
    return {
        "lock": {"name": lock.request.name, "digest": {"sha256": lock.digest[7:]}},
        "platform": lock.platform,
        "profile": lock.request.profile,
    }


def _test_result(lock: Lock, report: SelfTestReport, made: datetime) -> Mapping[str, Any]:
    """Return a test result; the whole report is an additional field beside the standard ones.

    What belongs to one run, and not to the image, is left out: times, memory, and the values of results,
    whose hashes stay.
    """
    bare = replace(
        report,
        checks=tuple(replace(check, values={}, seconds=0.0, traceback="") for check in report.checks),
        seconds=0.0,
        peak_memory_bytes=0,
    )
    return {
        "result": {"passed": "PASSED", "failed": "FAILED", "inconclusive": "WARNED"}[report.verdict],
        "configuration": [
            {"name": "selftest.py", "digest": {"sha256": report.program}},  # the first names the test
            {"name": "pylock.toml", "digest": {"sha256": lock.digest[7:]}},
        ],
        **_tests(report),
        "reprobuild": {"schema": 1, "finishedOn": made.strftime(_TIME), "report": bare.to_dict()},
    }


def _tests(report: SelfTestReport) -> Mapping[str, list[str]]:
    """Return the checks of a report as in-toto's test result lists them."""
    names: dict[str, list[str]] = {status: [] for status in get_args(Status)}
    for check in report.checks:
        names[check.status].append(check.label)
    return {
        "passedTests": names["passed"],
        "warnedTests": [*names["inconclusive"], *names["not-run"]],
        "failedTests": names["failed"],
    }


def _tool() -> str:
    return f"pkg:pypi/reprobuild@{__version__}"


def _uri(address: str) -> str:
    """Return an address as a URI: a Debian package has an archive and a path, a layer no scheme."""
    return address if "://" in address else f"pkg:generic/{quote(address, safe='/:@')}"


@refused_as(EvidenceError, "")
def read_statement(data: bytes) -> Statement:
    """Read an untrusted statement. Raises `EvidenceError`."""
    if len(data) > LARGEST:
        raise EvidenceError(f"it has more than {LARGEST:,} bytes")
    try:
        value = parse_json(data)
    except ValueError as error:
        raise EvidenceError(f"it is not JSON: {error}") from None
    table = JsonTable(value, "statement")
    if table.data.get("_type") != STATEMENT:
        raise EvidenceError("it is not an in-toto statement of version 1")
    found = [kind for kind in get_args(Kind) if PREDICATES[kind] == table.data.get("predicateType")]
    if not found:
        raise EvidenceError(f"its predicate type is not known: {shown(table.data.get('predicateType'))}")
    predicate = table.value("predicate", dict)
    return Statement(found[0], _subjects(table), _made(found[0], _predicate(predicate)), predicate)


def _subjects(table: Table) -> frozenset[str]:
    subjects = table.tables("subject")
    if not 0 < len(subjects) <= 64:
        raise table.bad("subject", "expected an array of 1 to 64")
    return frozenset(f"sha256:{each.table('digest').sha256()}" for each in subjects)


def _made(kind: Kind, predicate: Table) -> datetime | None:
    match kind:
        case "sbom":
            return None
        case "provenance":
            text = predicate.table("runDetails").table("metadata").value("finishedOn", str)
        case "test-result":
            text = predicate.table("reprobuild").value("finishedOn", str)
        case "rebuild":
            text = predicate.value("timeVerified", str)
    try:
        return datetime.strptime(text, _TIME).replace(tzinfo=UTC)
    except ValueError:
        raise EvidenceError(f"its time {shown(text)} is not like 2026-01-31T12:00:00Z") from None


def _predicate(predicate: Mapping[str, Any]) -> Table:
    return JsonTable(predicate, "predicate")


@dataclass(frozen=True, slots=True)
class BillEntry:
    """A file in a bill of materials: a component, or what one was made from."""

    sha256: str
    """Empty for a component without one."""
    is_component: bool
    name: str
    version: str
    scope: str
    """Of the component; ``excluded`` is not in the image."""
    purl: str
    """Of the component, without what follows its version, which may come from its files."""


@refused_as(EvidenceError, "")
def parts_of(predicate: Mapping[str, Any]) -> frozenset[BillEntry]:
    """Return the components of a bill of materials, and what else has a SHA-256. Raises `EvidenceError`."""
    found = set()
    for component in _predicate(predicate).tables("components"):
        name, version = component.value("name", str), component.value("version", str, "")
        scope, purl = component.value("scope", str, "required"), component.value("purl", str, "")
        for part in (component, *component.tables("externalReferences", default=())):
            hashes = [
                entry.value("content", str)
                for entry in part.tables("hashes", default=())
                if entry.data.get("alg") == "SHA-256"
            ]
            found |= {
                BillEntry(sha256, part is component, name, version, scope, purl.partition("?")[0])
                for sha256 in hashes or ([""] if part is component else [])
            }
    return frozenset(found)


@refused_as(EvidenceError, "")
def dependencies_of(predicate: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the names of a provenance's resolved dependencies by their SHA-256. Raises `EvidenceError`."""
    found = {}
    for entry in _predicate(predicate).table("buildDefinition").tables("resolvedDependencies"):
        sha256 = entry.table("digest").sha256()
        found[sha256] = entry.value("name", str, sha256)
    return found


@refused_as(EvidenceError, "")
def inputs_of(predicate: Mapping[str, Any]) -> frozenset[tuple[str, str, str]]:
    """Return name, SHA-256 and address of what a provenance names: locked files, and reprobuild's own.

    Raises `EvidenceError`.
    """
    found = _predicate(predicate)
    entries = list(found.table("buildDefinition").tables("resolvedDependencies"))
    entries += found.table("runDetails").table("builder").tables("builderDependencies", default=())
    return frozenset(
        (entry.value("name", str, ""), entry.table("digest").sha256(), entry.value("uri", str, ""))
        for entry in entries
    )


@refused_as(EvidenceError, "")
def parameters_of(provenance: Statement) -> Mapping[str, Any]:
    """Return the external parameters of a provenance of ours. Raises `EvidenceError`."""
    definition = _predicate(provenance.predicate).table("buildDefinition")
    if (found := definition.value("buildType", str)) != BUILD_TYPE:
        raise EvidenceError(f"the provenance is of another build type, {found[:160]}")
    return _parameters(provenance).data


def _parameters(provenance: Statement) -> Table:
    return _predicate(provenance.predicate).table("buildDefinition").table("externalParameters")


@refused_as(EvidenceError, "")
def lock_of(statement: Statement) -> str:
    """Return the digest of the lock that a provenance or a test result names. Raises `EvidenceError`."""
    if statement.kind == "provenance":
        return f"sha256:{_parameters(statement).table('lock').table('digest').sha256()}"
    sha256 = _named("pylock.toml", _predicate(statement.predicate).tables("configuration", default=()))
    if sha256 is None:
        raise EvidenceError("it names no lock")
    return f"sha256:{sha256}"


@refused_as(EvidenceError, "")
def rebuilt_from(vote: Statement) -> str:
    """Return the digest of the lock that an image was rebuilt from. Raises `EvidenceError`."""
    predicate = _predicate(vote.predicate)
    resource = predicate.value("resourceUri", str)
    if resource not in map(_resource, vote.subjects):
        raise EvidenceError(f"names another image than its subject, {resource[:160]}")
    return f"sha256:{predicate.table('policy').table('digest').sha256()}"


def _resource(digest: str) -> str:
    return f"pkg:oci/image@{quote(digest)}"


@refused_as(EvidenceError, "")
def _program_in_configuration(test: Statement) -> str | None:
    return _named("selftest.py", _predicate(test.predicate).tables("configuration", default=()))


@refused_as(EvidenceError, "")
def program_of(provenance: Statement) -> str | None:
    """Return the SHA-256 of the self-test program that a provenance names. Raises `EvidenceError`."""
    builder = _predicate(provenance.predicate).table("runDetails").table("builder")
    return _named("selftest.py", builder.tables("builderDependencies", default=()))


def _named(name: str, entries: Sequence[Table]) -> str | None:
    """Return the SHA-256 of the entry with a name."""
    return next((e.table("digest").sha256() for e in entries if e.data.get("name") == name), None)
