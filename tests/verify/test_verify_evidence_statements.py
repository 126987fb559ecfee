"""Statements about an image, and reading those of strangers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprobuild.errors import EvidenceError
from reprobuild.render.own_files import own_files
from reprobuild.verify.evidence.statements import (
    LARGEST,
    PREDICATES,
    Kind,
    dependencies_of,
    lock_of,
    parts_of,
    program_of,
    read_statement,
    rebuilt,
)
from support.evidence import MADE, OTHER, SUBJECT, a_lock, a_test, texts
from support.reports import FAILED, a_check


def test_the_same_image_report_and_time_give_the_same_bytes() -> None:
    again = replace(a_test(), seconds=99.0, peak_memory_bytes=1)
    assert texts() == texts(again)
    later = texts(made=MADE + timedelta(seconds=1))
    assert [kind for kind in later if later[kind] != texts()[kind]] == ["provenance", "test-result"]


def test_each_names_both_digests_of_the_image_and_its_predicate() -> None:
    for kind, text in texts().items():
        table = json.loads(text)
        assert table["_type"] == "https://in-toto.io/Statement/v1"
        assert {each["name"]: "sha256:" + each["digest"]["sha256"] for each in table["subject"]} == {
            "manifest": SUBJECT.manifest,
            "config": SUBJECT.config,
        }
        assert table["predicateType"] == PREDICATES[kind]
        assert read_statement(text).subjects == SUBJECT.digests


def test_a_test_result_has_the_fields_of_its_specification_and_the_whole_report() -> None:
    checks = [
        a_check(),
        a_check(name="matmul", status="not-run", reason="no GPU", results={}),
    ]
    predicate = json.loads(texts(a_test(*checks))["test-result"])["predicate"]
    assert (predicate["result"], predicate["passedTests"][0]) == ("PASSED", "conv2d")
    assert "matmul" not in predicate["passedTests"]
    assert (predicate["warnedTests"], predicate["failedTests"]) == (["matmul"], [])
    assert {each["name"] for each in predicate["configuration"]} == {"pylock.toml", "selftest.py"}
    report = read_statement(texts(a_test(*checks))["test-result"]).report
    assert [check.name for check in report.checks[:2]] == ["conv2d", "matmul"]
    assert report.checks[0].results == a_test().checks[0].results
    assert report.checks[0].values == {}
    failed = texts(a_test(FAILED))["test-result"]
    assert json.loads(failed)["predicate"]["result"] == "FAILED"
    assert not read_statement(failed).report.passed


def test_provenance_names_every_locked_file_and_the_bill_of_materials_has_them() -> None:
    lock = a_lock()
    provenance, sbom = (read_statement(texts()[kind]) for kind in ("provenance", "sbom"))
    assert dependencies_of(provenance.predicate).keys() == {a.sha256 for a in lock.artifacts}
    assert dependencies_of(provenance.predicate).keys() <= {part.sha256 for part in parts_of(sbom.predicate)}
    assert lock_of(provenance) == lock.digest == lock_of(read_statement(texts()["test-result"]))
    assert program_of(provenance) == own_files().sha256["selftest.py"]
    for entry in provenance.predicate["buildDefinition"]["resolvedDependencies"]:
        assert "://" in entry["uri"] or entry["uri"].startswith("pkg:")


def test_a_rebuild_is_told_of_the_manifest_alone() -> None:
    found = read_statement(rebuilt(SUBJECT, a_lock().digest, MADE))
    assert (found.kind, found.made) == ("rebuild", MADE)
    assert found.subjects == {SUBJECT.manifest}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"_type": "https://in-toto.io/Statement/v0.1"}, "not an in-toto statement of version 1"),
        ({"predicateType": "https://example.org/mine"}, "predicate type is not known"),
        ({"subject": []}, "expected an array of 1 to 64"),
        ({"subject": [{"digest": {"sha256": "A" * 64}}]}, "64 lower-case hex digits"),
        ({"subject": [{"digest": {"sha512": "a" * 128}}]}, r"subject\[0\]\.digest\.sha256: missing"),
        ({"subject": ["sha256"]}, "expected an object"),
        ({"predicate": []}, "expected an object"),
        ({"predicate": {"reprobuild": {"finishedOn": "yesterday"}}}, "is not like 2026"),
    ],
)
def test_a_statement_that_is_not_valid_is_refused(change: dict[str, Any], reason: str) -> None:
    table = {**json.loads(texts()["test-result"]), **change}
    with pytest.raises(EvidenceError, match=reason):
        read_statement(json.dumps(table).encode())


def test_what_is_too_large_or_read_in_two_ways_is_refused() -> None:
    with pytest.raises(EvidenceError, match="more than"):
        read_statement(b" " * (LARGEST + 1))
    with pytest.raises(EvidenceError, match="not JSON"):
        read_statement(b'{"_type": "a", "_type": "b"}')


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"result": "PASSED"}, "is not that of its report"),
        ({"reprobuild": {"finishedOn": "2026-01-01T00:00:00Z"}}, "report"),
        (
            {"reprobuild": {"finishedOn": "2026-01-01T00:00:00Z", "report": {"image": OTHER.manifest}}},
            "report",
        ),
    ],
)
def test_a_result_is_that_of_its_report(change: dict[str, Any], reason: str) -> None:
    table = json.loads(texts(a_test(FAILED))["test-result"])
    table["predicate"] |= change
    with pytest.raises(EvidenceError, match=reason):
        _ = read_statement(json.dumps(table).encode()).report


def test_a_report_of_another_image_is_refused() -> None:
    with pytest.raises(EvidenceError, match="about another image"):
        _ = read_statement(texts(a_test(subject=OTHER))["test-result"]).report


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "digest",
                        "sha256",
                        "name",
                        "report",
                        "reprobuild",
                        "finishedOn",
                        "components",
                        "hashes",
                        "alg",
                        "content",
                        "buildDefinition",
                        "resolvedDependencies",
                        "runDetails",
                        "builder",
                        "metadata",
                        "externalParameters",
                        "lock",
                        "configuration",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ),
    st.sampled_from(sorted(PREDICATES.values())),
)
def test_whatever_a_stranger_writes_is_read_or_refused(value: Any, predicate: str) -> None:
    table = {**json.loads(texts()["sbom"]), "predicateType": predicate, "predicate": value}
    try:
        found = read_statement(json.dumps(table).encode())
        for ask in (parts_of, dependencies_of):
            ask(found.predicate)
        lock_of(found)
        program_of(found)
        _ = found.report
    except EvidenceError:
        pass


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("sbom", lambda predicate: predicate["components"][0].update(hashes=5)),
        ("sbom", lambda predicate: predicate["components"][0].update(externalReferences=5)),
        ("sbom", lambda predicate: predicate["components"][0].update(externalReferences=[{"hashes": 5}])),
        ("test-result", lambda predicate: predicate.update(configuration=5)),
        ("provenance", lambda predicate: predicate["runDetails"]["builder"].update(builderDependencies=5)),
    ],
)
def test_a_number_in_the_place_of_a_list(kind: Kind, change: Callable[[Any], None]) -> None:
    table = json.loads(texts()[kind])
    change(table["predicate"])
    statement = read_statement(json.dumps(table).encode())
    with pytest.raises(EvidenceError, match="expected an array"):
        {"sbom": lambda s: parts_of(s.predicate), "test-result": lock_of, "provenance": program_of}[kind](
            statement
        )
