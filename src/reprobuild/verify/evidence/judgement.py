"""Judge the documents about an image by a policy, and name what is wrong with each. Pure.

A document that does not count is never silent: it is listed with its reason. What nobody signed proves only
that somebody wrote it; with keys, only what one of them signed counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from ...errors import EvidenceError
from ...host.console import first_of, one_line
from ...lock.bill import cyclonedx
from ...lock.model import Lock
from ...oci.documents import parse_json
from ...oci.registry.referrers import Unread
from ...render.program import BATTERY, selftest_checks, selftest_program
from ...selftest.report import SelfTestReport
from .policy import Policy
from .signatures import Document, read_document
from .statements import (
    REBUILT,
    Kind,
    Statement,
    Subject,
    dependencies_of,
    inputs_of,
    lock_of,
    parameters_for,
    parameters_of,
    parts_of,
    program_of,
    provenance_of,
    rebuilt_from,
)

if TYPE_CHECKING:
    from securesystemslib.signer import Key

WANTED: tuple[Kind, ...] = ("sbom", "provenance", "test-result")

_IN_ORDER: tuple[Kind, ...] = ("test-result", "provenance", "sbom")
"""Order of the checks; each document is compared with those before it."""

_NAMED = 5
"""Names that a message lists."""

_ANY_TIME = datetime.fromtimestamp(0, UTC)

_AHEAD = timedelta(minutes=10)
"""How far another machine's clock may be ahead of ours."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """The verdict on the documents about an image."""

    refused: tuple[str, ...]
    """Why they do not suffice; none: they do."""
    ignored: tuple[str, ...]
    """The documents that do not count, each with its reason."""
    counted: Mapping[Kind, Statement]
    """What counts, the newest of each kind."""
    signers: Mapping[Kind, frozenset[str]]
    """The IDs of the keys that signed it."""
    builders: frozenset[str]
    """The IDs of the keys whose owners rebuilt the image."""
    report: SelfTestReport | None
    unknown: tuple[str, ...]
    """What nothing here can tell of what counts."""
    by_configuration: bool
    """Whether something that counts names the configuration and not the manifest, so that nobody has said
    anything of the layers but what they unpack to."""

    @property
    def good(self) -> bool:
        """Whether the policy is met."""
        return not self.refused


def judge(
    documents: Mapping[str, bytes | Unread],
    subject: Subject,
    policy: Policy,
    now: datetime,
    lock: Lock | None = None,
) -> Judgement:
    """Judge the documents about an image, each under what messages call it.

    ``lock``: the one in the image, where that is known; the bill of materials is then held against it, else
    against the provenance.
    """
    keys = [*policy.keys, *policy.builder_keys]
    read: dict[Kind, list[Document]] = {}
    ignored: list[str] = []
    for place, data in documents.items():
        try:
            document = _counts(read_document(data, keys), subject, policy, now, lock)
            read.setdefault(document.statement.kind, []).append(document)
        except EvidenceError as error:
            ignored.append(f"{place}: {error.message}")
    builders = frozenset(signer for vote in read.pop("rebuild", ()) for signer in _others(vote, policy))
    why = "; see what does not count" if ignored else ""
    refused = [f"there is no {kind} that counts{why}" for kind in WANTED if kind not in read]
    counted: dict[Kind, Statement] = {}
    signers: dict[Kind, frozenset[str]] = {}
    for kind in _IN_ORDER:
        for document in _newest(read.get(kind, ())):
            counted[kind], signers[kind] = document.statement, document.signers
            if wrong := _refusals(kind, counted, policy, now, lock):
                refused += wrong
                break
    if len(builders) < policy.builders:
        refused.append(
            f"other builders that rebuilt it: {len(builders)}, and the policy asks for {policy.builders}"
        )
    report = _report(counted)
    return Judgement(
        refused=tuple(refused),
        ignored=tuple(ignored),
        counted=counted,
        signers=signers,
        builders=builders,
        report=report,
        unknown=tuple(_unknown(counted, report, lock)),
        by_configuration=any(subject.manifest not in each.subjects for each in counted.values()),
    )


def _newest(documents: Sequence[Document]) -> Sequence[Document]:
    """Return the documents of one kind that were made last. All of one time must suffice."""
    if not documents:
        return ()
    last = max(_time(document) for document in documents)
    found = [document for document in documents if _time(document) == last]
    return sorted(found, key=lambda document: sorted(document.signers))


def _time(document: Document) -> str:
    made = document.statement.made
    return "" if made is None else made.isoformat()


def _counts(
    document: Document, subject: Subject, policy: Policy, now: datetime, lock: Lock | None
) -> Document:
    """Return a document that may count. Raises `EvidenceError` with the reason why one may not."""
    statement = document.statement
    if not statement.subjects & subject.digests:
        raise EvidenceError(f"is about another image, {', '.join(sorted(statement.subjects))}")
    if statement.kind == "rebuild":
        _check_vote(statement, subject, now, lock)
        _check_signed(document, policy.builder_keys or policy.keys, anybody=not policy.builders)
        if policy.builders and not _others(document, policy):
            raise EvidenceError("is signed by a key that keys has too, so by no other builder")
    else:
        _check_signed(document, policy.keys, anybody=not policy.keys)
    return document


def _others(vote: Document, policy: Policy) -> frozenset[str]:
    """Return the signers of a vote that count as builders: for a policy of builders, none that `keys` has."""
    if not policy.builders:
        return vote.signers
    voters = {key.keyid for key in policy.builder_keys} - {key.keyid for key in policy.keys}
    return vote.signers & voters


def _check_signed(document: Document, keys: Sequence[Key], *, anybody: bool) -> None:
    if anybody or document.signers & {key.keyid for key in keys}:
        return
    if not document.signed:
        raise EvidenceError("has no signature")
    raise EvidenceError("is signed by another key, or was altered: no given key fits its signature")


def _check_vote(statement: Statement, subject: Subject, now: datetime, lock: Lock | None) -> None:
    levels = statement.predicate.get("verifiedLevels")
    if statement.predicate.get("verificationResult") != "PASSED" or not isinstance(levels, list):
        raise EvidenceError("does not say that a rebuild passed")
    if REBUILT not in levels:
        raise EvidenceError(f"does not say {REBUILT}")
    if subject.manifest and subject.manifest not in statement.subjects:
        raise EvidenceError("is about the image with its layers compressed in another way")
    if (source := rebuilt_from(statement)) != (source if lock is None else lock.digest):
        raise EvidenceError(f"is of another lock, {source}")
    if why := _of_future(statement, now):
        raise EvidenceError(f"is {why}")


def _refusals(
    kind: Kind, counted: Mapping[Kind, Statement], policy: Policy, now: datetime, lock: Lock | None
) -> list[str]:
    """Return what is wrong with the statement of a kind that would count."""
    try:
        if kind == "test-result":
            return [*_of_report(counted[kind].report, policy), *_of_time(counted[kind], policy, now)]
        if kind == "provenance":
            why = _of_future(counted[kind], now)
            wrong = [f"the provenance is {why}"] if why else []
            return [*wrong, *_of_provenance(counted[kind], counted, policy, lock)]
        return _of_sbom(counted[kind], counted.get("provenance"), lock)
    except EvidenceError as error:
        return [error.message]


def _report(counted: Mapping[Kind, Statement]) -> SelfTestReport | None:
    """Return the report of the self-test; None where there is none, or it is not valid."""
    try:
        return counted["test-result"].report
    except (EvidenceError, KeyError):
        return None


def _of_report(report: SelfTestReport, policy: Policy) -> list[str]:
    refused = []
    if not report.passed:
        names = ", ".join(check.label for check in report.failed or report.having("inconclusive"))
        refused.append(f"the self-test {report.verdict}: {names}")
    if report.mode not in ("battery", "full"):
        refused.append(f"the self-test is not the battery: its mode is {report.mode}")
    else:
        refused += [*_of_names(report), *_of_coverage(report)]
    states = {check.label: check for check in report.checks}
    for name in policy.checks:
        if (check := states.get(name)) is None:
            refused.append(_without(name, states, report))
        elif check.status != "passed":
            refused.append(f"the check {name} is {check.status}: {check.reason}")
    if policy.gpu is not None:
        gpu = report.scope.get("gpu")
        tested = gpu.get("name") if isinstance(gpu, dict) else None
        if not report.gpu_tested:
            refused.append(f"it was not tested on a GPU ({report.gpu_reason}), and {policy.gpu} is asked for")
        elif tested != policy.gpu:
            refused.append(f"it was tested on {tested}, and {policy.gpu} is asked for")
    return refused


def _without(name: str, states: Collection[str], report: SelfTestReport) -> str:
    if name.endswith(" (cuda)") and not report.gpu_tested and name.removesuffix(" (cuda)") in states:
        return f"the check {name} was not run: no GPU was tested ({report.gpu_reason})"
    near = get_close_matches(name, states, 1)
    return f"the self-test has no check {name}" + (f": is {near[0]} meant?" if near else "")


def _of_coverage(report: SelfTestReport) -> Iterator[str]:
    """Refuse a report most of whose checks on a device were not run: nothing failed, and little was seen."""
    for device, where in (("cpu", "the CPU"), *((("cuda", "the GPU"),) if report.gpu_tested else ())):
        checks = [check for check in report.checks if check.device == device]
        lost = [check for check in checks if check.status == "not-run"]
        if 2 * len(lost) >= len(checks):
            ran, why = len(checks) - len(lost), f": {one_line(lost[0].reason)}" if lost else ""
            yield f"the self-test ran only {ran} of {len(checks)} checks on {where}{why}"


def is_of_this_release(report: SelfTestReport) -> bool:
    """Whether the program that made a report is the one that ships with this reprobuild."""
    return report.program == hashlib.sha256(selftest_program()).hexdigest()


def _of_names(report: SelfTestReport) -> list[str]:
    """Compare the checks in a report with those of its program, including those not run."""
    if not is_of_this_release(report):
        return []
    devices = {"cpu", "cuda"} if report.gpu_tested else {"cpu"}
    known = {check.label for check in selftest_checks()}
    whole = {check.label for check in selftest_checks() if check.part == BATTERY and check.device in devices}
    named = {check.label for check in report.checks}
    wrong = (
        ("lacks checks of its program", sorted(whole - named)),
        ("has checks that its program does not have", sorted(named - known)),
    )
    return [f"the self-test's report {what}: {_some(found)}" for what, found in wrong if found]


def _some(names: Sequence[str]) -> str:
    return first_of([one_line(name) for name in names], _NAMED)


def _unknown(
    counted: Mapping[Kind, Statement], report: SelfTestReport | None, lock: Lock | None
) -> Iterator[str]:
    if report is not None and not is_of_this_release(report):
        yield (
            f"whether the report has all checks of its self-test, which is another release's"
            f" ({report.program[:12]}): it has {len(report.checks)}"
        )
    if counted and lock is None:
        yield "whether the evidence matches the lock in the image: no lock could be read from the image"


def _of_future(statement: Statement, now: datetime) -> str:
    made = statement.made
    if made is None or made <= now + _AHEAD:
        return ""
    return f"of {made:%Y-%m-%d %H:%M} UTC, which is in the future: is the clock here right?"


def _of_time(test: Statement, policy: Policy, now: datetime) -> list[str]:
    made = test.made
    assert made is not None
    if why := _of_future(test, now):
        return [f"the self-test is {why}"]
    if policy.max_age is not None and now - made > policy.max_age:
        days = (now - made).days
        return [f"the self-test is {days} days old, and {policy.max_age.days} are allowed"]
    return []


def _of_provenance(
    provenance: Statement,
    counted: Mapping[Kind, Statement],
    policy: Policy,
    lock: Lock | None,
) -> list[str]:
    refused, report = [], _report(counted)
    named = lock_of(provenance)
    if (test := counted.get("test-result")) is not None and lock_of(test) != named:
        refused.append(f"the test result is of lock {lock_of(test)}, the provenance of {named}")
    if lock is not None and lock.digest != named:
        refused.append(f"the provenance is of lock {named}, and the image carries {lock.digest}")
    program = program_of(provenance)
    if lock is not None and lock.own_files is not None:
        program = lock.own_files.sha256.get("selftest.py")
    if report is not None and report.program != program:
        refused.append(
            f"the report was made by another self-test program ({report.program[:12]}) than the image's"
            f" ({(program or 'none')[:12]})"
        )
    parameters = parameters_of(provenance)
    profile: object = parameters.get("profile") if lock is None else lock.request.profile
    if lock is not None and lock.digest == named:
        refused += _of_lock(provenance, parameters, lock)
    if policy.profile not in (None, profile):
        refused.append(f"the determinism profile is {profile}, and {policy.profile} is asked for")
    return refused


def _of_lock(provenance: Statement, parameters: Mapping[str, Any], lock: Lock) -> list[str]:
    """Compare what a provenance names with the image's own lock."""
    expected = parameters_for(lock)
    others = sorted({*expected, *parameters} - {k for k in expected if parameters.get(k) == expected[k]})
    refused = (
        [f"the provenance has other parameters than the image's lock: {_some(others)}"] if others else []
    )
    ours = {a.sha256: a.filename for a in lock.artifacts}
    named = dependencies_of(provenance.predicate)
    refused += [f"the provenance lacks {ours[each]}" for each in sorted(ours.keys() - named)[:10]]
    refused += [
        f"the provenance names {one_line(named[each])}, which the image's lock does not have"
        for each in sorted(named.keys() - ours)[:10]
    ]
    own = inputs_of(provenance_of(lock, _ANY_TIME))
    if ours.keys() == named.keys() and (other := inputs_of(provenance.predicate) ^ own):
        names = _some(sorted({name for name, *_ in other}))
        refused.append(
            f"the provenance has other names, addresses or own files than the image's lock: {names}"
        )
    return refused


def _of_sbom(sbom: Statement, provenance: Statement | None, lock: Lock | None) -> list[str]:
    parts, more = parts_of(sbom.predicate), set[str]()
    if lock is not None:
        own = parts_of(parse_json(cyclonedx(lock).encode()))
        lacks = sorted({part.sha256 for part in own - parts})
        more = {f"{part.name} {part.version}".strip() for part in parts - own if part.is_component}
        names = {"": "a component without a hash", **{a.sha256: a.filename for a in lock.artifacts}}
    elif provenance is not None:
        names = dict(dependencies_of(provenance.predicate))
        # Layers of a base image are inputs, and no components: the base is one.
        needed = {sha256 for sha256, name in names.items() if not name.startswith("layer ")}
        lacks = sorted(needed - {part.sha256 for part in parts})
    else:
        return []
    refused = [f"the bill of materials lacks {names.get(sha256, sha256)}" for sha256 in lacks[:10]]
    if more:
        refused.append(
            f"the bill of materials has {_some(sorted(more))}, which the image's lock does not have"
        )
    return refused
