"""Forged evidence with a right signature, as the owner of a stolen key or a careless tool could make it.

Each is refused by name: as what does not count, or as what is wrong with what counts.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reprobuild.oci.registry.referrers import Unread
from reprobuild.verify.evidence.judgement import judge
from reprobuild.verify.evidence.keys import read_private_key
from reprobuild.verify.evidence.signatures import sign
from reprobuild.verify.evidence.statements import Kind, rebuilt
from support.evidence import MADE, NOW, OTHER, SUBJECT, Change, Team, a_lock, texts
from support.reports import a_check


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return Team(tmp_path)


def report_of(table: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = table["predicate"]["reprobuild"]["report"]
    return found


def checks(change: Callable[[list[dict[str, Any]]], object]) -> Change:
    """Return a change of a report's checks, which the fields of the standard follow."""

    def change_both(table: dict[str, Any]) -> None:
        change(found := report_of(table)["checks"])
        table["predicate"]["passedTests"] = [each["name"] for each in found if each["status"] == "passed"]

    return change_both


def digests(table: dict[str, Any], **found: str) -> None:
    table["subject"] = [{"name": "manifest", "digest": found}]


WHEEL = a_lock().python[0].wheel


def component(table: dict[str, Any]) -> dict[str, Any]:
    """Return the component of a wheel."""
    return next(
        each
        for each in table["predicate"]["components"]
        if each.get("hashes") == [{"alg": "SHA-256", "content": WHEEL.sha256}]
    )


def inputs(table: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = table["predicate"]["buildDefinition"]
    return found


def hidden(table: dict[str, Any]) -> None:
    """Name a package's hash as where another one comes from."""
    components, lost = table["predicate"]["components"], component(table)
    components.remove(lost)
    components[0]["externalReferences"] = [{"type": "other", "url": "x:y", "hashes": lost["hashes"]}]


STATEMENTS: dict[str, tuple[Kind, Change, str]] = {
    "two digests, of which the one that is read is another image's": (
        "sbom",
        lambda s: digests(s, sha256=OTHER.manifest[7:], sha512="a" * 128),
        "sbom: is about another image",
    ),
    "a predicate of another kind": (
        "test-result",
        lambda s: s.update(predicate=json.loads(texts()["provenance"])["predicate"]),
        "test-result: predicate.reprobuild: missing",
    ),
    "a bill of materials below the type of a provenance": (
        "provenance",
        lambda s: s.update(predicate=json.loads(texts()["sbom"])["predicate"]),
        "provenance: predicate.runDetails: missing",
    ),
    "a day that no month has": (
        "provenance",
        lambda s: s["predicate"]["runDetails"]["metadata"].update(finishedOn="2026-02-30T12:00:00Z"),
        "is not like 2026-01-31T12:00:00Z",
    ),
    "a provenance of the future": (
        "provenance",
        lambda s: s["predicate"]["runDetails"]["metadata"].update(finishedOn="2036-01-01T12:00:00Z"),
        "the provenance is of 2036-01-01 12:00 UTC, which is in the future",
    ),
    "a provenance of another build type": (
        "provenance",
        lambda s: inputs(s).update(buildType="https://example.com/build/v1"),
        "the provenance is of another build type, https://example.com/build/v1",
    ),
    "a provenance of another profile than its lock has": (
        "provenance",
        lambda s: inputs(s)["externalParameters"].update(profile="portable"),
        "the provenance has other parameters than the image's lock: profile",
    ),
    "a provenance of another platform than its lock has": (
        "provenance",
        lambda s: inputs(s)["externalParameters"].update(platform="linux/arm64"),
        "the provenance has other parameters than the image's lock: platform",
    ),
    "a provenance that lacks an input": (
        "provenance",
        lambda s: inputs(s)["resolvedDependencies"].remove(
            next(each for each in inputs(s)["resolvedDependencies"] if each["name"] == WHEEL.filename)
        ),
        f"the provenance lacks {WHEEL.filename}",
    ),
    "a provenance with an input that the lock does not have": (
        "provenance",
        lambda s: inputs(s)["resolvedDependencies"].append({"name": "evil", "digest": {"sha256": "e" * 64}}),
        "the provenance names evil, which the image's lock does not have",
    ),
    "a provenance with an input from another address": (
        "provenance",
        lambda s: inputs(s)["resolvedDependencies"][0].update(uri="https://evil.example/x.whl"),
        "the provenance has other names, addresses or own files than the image's lock: ",
    ),
    "a provenance with an input by another name": (
        "provenance",
        lambda s: inputs(s)["resolvedDependencies"][0].update(name="harmless"),
        "the provenance has other names, addresses or own files than the image's lock: harmless",
    ),
    "a provenance that lacks one of reprobuild's own files": (
        "provenance",
        lambda s: s["predicate"]["runDetails"]["builder"]["builderDependencies"].pop(0),
        "the provenance has other names, addresses or own files than the image's lock: ",
    ),
    "a package under another name": (
        "sbom",
        lambda s: component(s).update(name="harmless"),
        f"the bill of materials lacks {WHEEL.filename}",
    ),
    "a package under another version": (
        "sbom",
        lambda s: component(s).update(version="9.9"),
        f"the bill of materials lacks {WHEEL.filename}",
    ),
    "a package by another's address, which scanners read": (
        "sbom",
        lambda s: component(s).update(purl="pkg:pypi/harmless@1.0"),
        f"the bill of materials lacks {WHEEL.filename}",
    ),
    "a package that the lock does not have": (
        "sbom",
        lambda s: s["predicate"]["components"].append(
            {"type": "library", "name": "evil", "hashes": [{"alg": "SHA-256", "content": "e" * 64}]}
        ),
        "the bill of materials has evil, which the image's lock does not have",
    ),
    "a package that the lock does not have, without a hash": (
        "sbom",
        lambda s: s["predicate"]["components"].append(
            {"type": "library", "name": "evil", "purl": "pkg:pypi/evil@1", "version": "1"}
        ),
        "the bill of materials has evil 1, which the image's lock does not have",
    ),
    "a second package by the hash of one": (
        "sbom",
        lambda s: s["predicate"]["components"].append({**component(s), "name": "evil"}),
        "the bill of materials has evil ",
    ),
    "a package that is said not to be in the image": (
        "sbom",
        lambda s: component(s).update(scope="excluded"),
        f"the bill of materials lacks {WHEEL.filename}",
    ),
    "a package as where another comes from": (
        "sbom",
        hidden,
        f"the bill of materials lacks {WHEEL.filename}",
    ),
    "a check twice, and not run the second time": (
        "test-result",
        lambda s: report_of(s)["checks"].append(a_check(status="not-run", reason="x", results={}, values={})),
        "the check conv2d is there twice",
    ),
    "one check alone": (
        "test-result",
        checks(lambda found: found.__delitem__(slice(1, None))),
        "the self-test's report lacks checks of its program: ",
    ),
    "a check by a name that looks like another's": (
        "test-result",
        checks(lambda found: found[0].update(name="\u0441onv2d")),
        "the self-test's report lacks checks of its program: conv2d",
    ),
    "a check that the program does not have": (
        "test-result",
        checks(lambda found: found.append(a_check(name="conv2d\u200b"))),
        "the self-test's report has checks that its program does not have: conv2d\\u200b",
    ),
    "other tests in the standard's fields than in the report": (
        "test-result",
        lambda s: s["predicate"]["passedTests"].append("everything"),
        "its passedTests are not those of its report",
    ),
    "a failed test in the standard's fields alone": (
        "test-result",
        lambda s: s["predicate"]["failedTests"].append("conv2d"),
        "its failedTests are not those of its report",
    ),
    "another program in the standard's fields than in the report": (
        "test-result",
        lambda s: s["predicate"]["configuration"][0]["digest"].update(sha256="f" * 64),
        "its configuration names another self-test program than its report",
    ),
    "a report about another image": (
        "test-result",
        lambda s: report_of(s).update(image=OTHER.manifest),
        f"its report is about another image, {OTHER.manifest}",
    ),
    "a report about one of several images": (
        "test-result",
        lambda s: s["subject"].extend(
            {"name": "more", "digest": {"sha256": each[7:]}} for each in sorted(OTHER.digests)
        ),
        "it is about several images, and its report about one",
    ),
    "a number that is none": (
        "test-result",
        lambda s: report_of(s).update(seconds=float("nan")),
        "NaN is not a number of JSON",
    ),
    "a number beyond all": (
        "test-result",
        lambda s: report_of(s).update(peak_memory_bytes=10**400),
        "is out of range",
    ),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_forged_statement(name: str, team: Team) -> None:
    kind, change, reason = STATEMENTS[name]
    assert team.judge(lock=a_lock()).good
    team.resign(kind, change)
    found = team.judge(lock=a_lock())
    assert not found.good
    assert reason in "\n".join([*found.refused, *found.ignored])


TEXTS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a key in two spellings": (
        lambda text: text.replace(b'"subject":', b'"Subject":[],"subject":', 1),
        "the keys Subject and subject are one to some tools",
    ),
    "more behind its end": (lambda text: text + text, "it is not JSON"),
    "another encoding": (lambda text: text.decode().encode("utf-16-le"), "sbom: it is not"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_forged_text(name: str, team: Team) -> None:
    change, reason = TEXTS[name]
    team.documents["sbom"] = sign(change(texts()["sbom"]), read_private_key(team.key, str))
    found = team.judge(lock=a_lock())
    assert "there is no sbom that counts; see what does not count" in found.refused
    assert reason in "\n".join(found.ignored)


BUNDLES: dict[str, tuple[Change, str]] = {
    "another payload type": (
        lambda b: b["dsseEnvelope"].update(payloadType="application/vnd.in-toto+json;v=1"),
        "dsseEnvelope.payloadType: it is not an in-toto statement",
    ),
    "another version of the bundle": (
        lambda b: b.update(mediaType="application/vnd.dev.sigstore.bundle+json;version=0.1"),
        "it is neither a statement nor a bundle",
    ),
    "a statement around a bundle": (
        lambda b: b.update(json.loads(texts()["sbom"])),
        "sbom: has no signature",
    ),
    "a payload that is not base64": (
        lambda b: b["dsseEnvelope"].update(payload=b["dsseEnvelope"]["payload"] + "\n"),
        "its payload or a signature is not base64",
    ),
    "seventeen signatures": (
        lambda b: b["dsseEnvelope"].update(signatures=b["dsseEnvelope"]["signatures"] * 17),
        "it has more than 16 signatures",
    ),
    "no signature in an envelope": (
        lambda b: b["dsseEnvelope"].update(signatures=[]),
        "sbom: has no signature",
    ),
    "an empty signature": (
        lambda b: b["dsseEnvelope"].update(signatures=[{"keyid": "x", "sig": ""}]),
        "sbom: is signed by another key, or was altered",
    ),
    "a signature of the bare payload": (
        lambda b: b["dsseEnvelope"].update(payload=base64.b64encode(texts()["provenance"]).decode()),
        "sbom: is signed by another key, or was altered",
    ),
}


@pytest.mark.parametrize("name", BUNDLES)
def test_a_forged_bundle(name: str, team: Team) -> None:
    change, reason = BUNDLES[name]
    bundle = json.loads(team.documents["sbom"])
    change(bundle)
    team.documents["sbom"] = json.dumps(bundle).encode()
    found = team.judge(lock=a_lock())
    assert "there is no sbom that counts; see what does not count" in found.refused
    assert reason in "\n".join(found.ignored)


def test_what_a_registry_lists_and_is_no_document_about_the_image(team: Team) -> None:
    more: dict[str, bytes | Unread] = {"empty": b"", "unread": Unread("it has two layers")}
    found = judge({**team.documents, **more}, SUBJECT, team.policy, NOW, a_lock())
    assert found.good
    assert [line.partition(": ")[::2] for line in found.ignored] == [
        ("empty", "it is not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("unread", "it has two layers"),
    ]


VOTES: dict[str, tuple[Change, str]] = {
    "of another lock": (
        lambda s: s["predicate"]["policy"]["digest"].update(sha256="0" * 64),
        "is of another lock, sha256:0000",
    ),
    "about another resource than its subject": (
        lambda s: s["predicate"].update(resourceUri=f"pkg:oci/image@{OTHER.manifest}"),
        "names another image than its subject, pkg:oci/image@sha256:cccc",
    ),
    "of the future": (
        lambda s: s["predicate"].update(timeVerified="2036-01-01T12:00:00Z"),
        "is of 2036-01-01 12:00 UTC, which is in the future",
    ),
    "without what it was rebuilt from": (lambda s: s["predicate"].pop("policy"), "predicate.policy: missing"),
}


@pytest.mark.parametrize("name", VOTES)
def test_a_forged_vote(name: str, team: Team) -> None:
    change, reason = VOTES[name]
    builder = team.vote("one")
    assert team.judge(lock=a_lock(), builders=1, builder_keys=[builder]).good
    table = json.loads(rebuilt(SUBJECT, a_lock().digest, MADE))
    change(table)
    team.documents["rebuild.one"] = sign(
        json.dumps(table).encode(), read_private_key(team.folder / "one.pem", str)
    )
    found = team.judge(lock=a_lock(), builders=1, builder_keys=[builder])
    assert "other builders that rebuilt it: 0, and the policy asks for 1" in found.refused
    assert reason in "\n".join(found.ignored)
