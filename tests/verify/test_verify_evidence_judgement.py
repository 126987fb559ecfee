"""Each way in which evidence may not suffice, by name."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from reprobuild.render.own_files import own_files
from reprobuild.verify.evidence.judgement import Judgement, judge
from reprobuild.verify.evidence.keys import read_private_key, read_public_key
from reprobuild.verify.evidence.policy import Policy
from reprobuild.verify.evidence.signatures import sign
from reprobuild.verify.evidence.statements import Kind, Subject, rebuilt
from support.evidence import (
    MADE,
    NOW,
    OTHER,
    SUBJECT,
    Change,
    Team,
    a_lock,
    a_test,
    altered,
    signed,
    texts,
    whole,
    write_key,
)
from support.reports import FAILED, a_check


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return Team(tmp_path)


def test_evidence_suffices(team: Team) -> None:
    found = team.judge()
    assert (found.refused, found.ignored) == ((), ())
    assert found.report is not None
    assert {kind: len(signers) for kind, signers in found.signers.items()} == {
        "sbom": 1,
        "provenance": 1,
        "test-result": 1,
    }
    assert team.judge(lock=a_lock()).good
    assert team.judge(checks=["conv2d"], profile=a_lock().request.profile, max_age=timedelta(days=4)).good


def test_by_the_configuration_it_is_the_same_image(team: Team) -> None:
    assert team.judge(subject=Subject("sha256:" + "e" * 64, SUBJECT.config)).good
    assert team.judge(subject=Subject(SUBJECT.config, "")).good


def test_without_keys_unsigned_evidence_counts_and_has_no_signer() -> None:
    found = judge({str(kind): text for kind, text in texts().items()}, SUBJECT, Policy(), NOW)
    assert found.good
    assert set(map(len, found.signers.values())) == {0}


def test_nothing_is_not_enough(team: Team) -> None:
    team.documents = {}
    assert team.judge().refused == tuple(
        f"there is no {kind} that counts" for kind in ("sbom", "provenance", "test-result")
    )


def refused(found: Judgement) -> str:
    assert not found.good
    return "\n".join([*found.refused, *found.ignored])


def test_a_foreign_key(team: Team) -> None:
    team.documents = signed(texts(), write_key(team.folder, "foreign"))
    assert "test-result: is signed by another key, or was altered" in refused(team.judge())


def test_no_signature(team: Team) -> None:
    team.documents["sbom"] = texts()["sbom"]
    assert "sbom: has no signature" in refused(team.judge())


def test_evidence_of_another_image_of_the_same_name(team: Team) -> None:
    team.documents = signed(texts(subject=OTHER), team.key)
    assert f"sbom: is about another image, {OTHER.manifest}" in refused(team.judge())


@pytest.mark.parametrize("kind", ["sbom", "provenance", "test-result"])
def test_an_altered_payload(kind: str, team: Team) -> None:
    team.documents[kind] = altered(team.documents[kind], lambda s: s["predicate"].update(note="harmless"))
    assert f"{kind}: is signed by another key, or was altered" in refused(team.judge())


def test_a_signature_of_another_statement(team: Team) -> None:
    bundle = json.loads(team.documents["sbom"])
    other = json.loads(team.documents["provenance"])
    bundle["dsseEnvelope"]["signatures"] = other["dsseEnvelope"]["signatures"]
    team.documents["sbom"] = json.dumps(bundle).encode()
    assert "sbom: is signed by another key, or was altered" in refused(team.judge())


def test_an_envelope_of_another_type_of_payload(team: Team) -> None:
    bundle = json.loads(team.documents["sbom"])
    bundle["dsseEnvelope"]["payloadType"] = "application/json"
    team.documents["sbom"] = json.dumps(bundle).encode()
    assert "sbom: dsseEnvelope.payloadType: it is not an in-toto statement" in refused(team.judge())


def test_a_stale_one_and_one_of_the_future(team: Team) -> None:
    assert "the self-test is 3 days old, and 2 are allowed" in refused(team.judge(max_age=timedelta(days=2)))
    team.documents = signed(texts(made=NOW + timedelta(hours=1)), team.key)
    assert "is in the future" in refused(team.judge())
    team.documents = signed(texts(made=NOW + timedelta(minutes=5)), team.key)
    assert team.judge().good


def test_a_failed_test(team: Team) -> None:
    team.documents = signed(texts(a_test(FAILED)), team.key)
    assert "the self-test failed: conv2d" in refused(team.judge())


def test_the_newest_result_counts_and_not_the_best(team: Team) -> None:
    later = texts(a_test(FAILED), made=MADE + timedelta(hours=1))
    team.documents["later"] = signed(later, team.key)["test-result"]
    assert "the self-test failed: conv2d" in refused(team.judge())


@pytest.mark.parametrize("first", ["good", "bad"])
@pytest.mark.parametrize("kind", ["test-result", "provenance", "sbom"])
@pytest.mark.parametrize("key", ["team", "other"])
def test_of_several_of_one_second_all_must_suffice(team: Team, kind: Kind, first: str, key: str) -> None:
    """A registry lists them in any order, and a key's ID says nothing."""
    other = write_key(team.folder, "other")
    keys = [*team.policy.keys, read_public_key(other.with_suffix(".pub"))]
    bad: dict[str, Change] = {
        "provenance": lambda s: s["predicate"]["buildDefinition"]["externalParameters"]["lock"].update(
            digest={"sha256": "0" * 64}
        ),
        "sbom": lambda s: s["predicate"].update(components=[]),
    }
    statement = texts(a_test(FAILED))[kind]
    if kind != "test-result":
        table = json.loads(statement)
        bad[kind](table)
        statement = json.dumps(table).encode()
    document = sign(statement, read_private_key(other if key == "other" else team.key, str))
    both = {"bad": document, "good": team.documents.pop(kind)}
    assert not team.judge(keys=keys).good
    team.documents |= {place: both[place] for place in sorted(both, reverse=first == "good")}
    assert not team.judge(keys=keys).good
    del team.documents["bad"]
    assert team.judge(keys=keys).good


def test_a_failed_test_that_says_that_it_passed(team: Team) -> None:
    def lie(table: dict[str, Any]) -> None:
        table["predicate"]["reprobuild"]["report"]["checks"][0]["status"] = "failed"

    team.resign("test-result", lie)
    assert "is not that of its checks" in refused(team.judge())


@pytest.mark.parametrize("mode", ["part", "prove"])
def test_another_test_than_the_battery(mode: str, team: Team) -> None:
    team.documents = signed(texts(a_test(mode=mode)), team.key)
    assert f"the self-test is not the battery: its mode is {mode}" in refused(team.judge())


@pytest.mark.parametrize("status", ["inconclusive", "not-run"])
def test_a_check_that_the_policy_wants(status: str, team: Team) -> None:
    unsure = a_check(name="control", status=status, reason="no race was seen", results={})
    team.documents = signed(texts(a_test(a_check(), unsure)), team.key)
    assert team.judge().good
    assert f"the check control is {status}: no race was seen" in refused(team.judge(checks=["control"]))
    words = refused(team.judge(checks=["conv2d", "matmul2"]))
    assert "the self-test has no check matmul2: is matmul meant?" in words
    assert "the check control (cuda) was not run: no GPU was tested (asked for the CPU only)" in refused(
        team.judge(checks=["control (cuda)"])
    )


def test_a_gpu_that_the_policy_wants(team: Team) -> None:
    wants = "it was not tested on a GPU (asked for the CPU only), and NVIDIA H100 is asked for"
    assert wants in refused(team.judge(gpu="NVIDIA H100"))
    scope = {"cpu": {"model": "Some CPU"}, "gpu": {"name": "NVIDIA A100"}}
    report = a_test(scope=scope, gpu={"tested": True, "reason": ""})
    team.documents = signed(texts(report), team.key)
    assert "it was tested on NVIDIA A100, and NVIDIA H100 is asked for" in refused(
        team.judge(gpu="NVIDIA H100")
    )
    assert team.judge(gpu="NVIDIA A100").good


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_report_whose_checks_were_mostly_not_run(device: str, team: Team) -> None:
    """It is whole and nothing failed, and it says next to nothing of the image."""
    scope = {"cpu": {"model": "Some CPU"}, "gpu": {"name": "NVIDIA A100"}}
    more: dict[str, Any] = {"scope": scope, "gpu": {"tested": True, "reason": ""}}

    def judged(left: int) -> Judgement:
        checks = [check for check in whole([a_check()], gpu=True) if check["device"] == device]
        lost = [{**check, "status": "not-run", "reason": "no room", "results": {}} for check in checks[left:]]
        team.documents = signed(texts(a_test(*checks[:left], *lost, **more)), team.key)
        return team.judge(gpu="NVIDIA A100")

    number = sum(check["device"] == device for check in whole([a_check()], gpu=True))
    where = {"cpu": "on the CPU", "cuda": "on the GPU"}[device]
    assert f"the self-test ran only 1 of {number} checks {where}: no room" in refused(judged(1))
    assert "the self-test ran only" in refused(judged(number // 2))
    assert judged(number // 2 + 1).good


def test_a_report_of_another_program(team: Team) -> None:
    team.documents = signed(texts(a_test(program="f" * 64)), team.key)
    assert "made by another self-test program (ffffffffffff)" in refused(team.judge())


def test_a_report_of_another_program_than_the_image_s_own_lock_names(team: Team) -> None:
    def other(table: dict[str, Any]) -> None:
        for entry in table["predicate"]["runDetails"]["builder"]["builderDependencies"]:
            entry["digest"]["sha256"] = "f" * 64

    team.documents = signed(texts(a_test(program="f" * 64)), team.key)
    team.resign("provenance", other)
    assert team.judge().good
    assert "made by another self-test program (ffffffffffff)" in refused(team.judge(lock=a_lock()))


def test_a_result_of_another_lock(team: Team) -> None:
    def other(table: dict[str, Any]) -> None:
        table["predicate"]["configuration"][1]["digest"]["sha256"] = "0" * 64

    team.resign("test-result", other)
    assert "the test result is of lock sha256:0000" in refused(team.judge())


def test_a_provenance_of_another_lock_than_the_image_carries(team: Team) -> None:
    lock = replace(a_lock(), python=a_lock().python[:-1])
    assert f"and the image carries {lock.digest}" in refused(team.judge(lock=lock))


@pytest.mark.parametrize("known", [True, False])
def test_a_bill_of_materials_that_lacks_a_package(known: bool, team: Team) -> None:
    team.resign("sbom", lambda table: table["predicate"]["components"].pop(0))
    lost = json.loads(texts()["sbom"])["predicate"]["components"][0]["name"]
    assert f"the bill of materials lacks {lost}" in refused(team.judge(lock=a_lock() if known else None))


def test_another_profile_than_the_policy_wants(team: Team) -> None:
    assert "the determinism profile is strict, and portable is asked for" in refused(
        team.judge(profile="portable")
    )
    assert team.judge(profile="strict").good


def test_builders_are_counted_by_their_keys(team: Team) -> None:
    one, two = team.vote("one"), team.vote("two")
    assert team.judge(builders=2, builder_keys=[one, two]).good
    team.documents["rebuild.again"] = team.documents["rebuild.one"]
    del team.documents["rebuild.two"]
    found = team.judge(builders=2, builder_keys=[one, two])
    assert "builders that rebuilt it: 1, and the policy asks for 2" in refused(found)


def test_the_word_of_a_builder_nobody_knows_and_of_another_image(team: Team) -> None:
    known = read_public_key(write_key(team.folder, "known").with_suffix(".pub"))
    team.vote("stranger")
    team.vote("elsewhere", OTHER)
    found = refused(team.judge(builders=1, builder_keys=[known]))
    assert "rebuild.stranger: is signed by another key" in found
    assert f"rebuild.elsewhere: is about another image, {OTHER.manifest}" in found
    assert "builders that rebuilt it: 0, and the policy asks for 1" in found


def test_a_rebuild_that_did_not_pass_is_no_vote(team: Team) -> None:
    key = write_key(team.folder, "one")
    table = json.loads(rebuilt(SUBJECT, a_lock().digest, MADE))
    for change, reason in (
        ({"verificationResult": "FAILED"}, "does not say that a rebuild passed"),
        ({"verifiedLevels": ["SLSA_BUILD_LEVEL_3"]}, "does not say REPROBUILD_IDENTICAL"),
    ):
        text = json.dumps({**table, "predicate": {**table["predicate"], **change}}).encode()
        team.documents["rebuild"] = sign(text, read_private_key(key, str))
        found = team.judge(builders=1, builder_keys=[read_public_key(key.with_suffix(".pub"))])
        assert reason in refused(found)


def test_which_checks_another_release_s_program_has_is_not_known(team: Team) -> None:
    """Its report is held against no list, and whoever relies on it is told so."""
    lock = replace(a_lock(), own_files=replace(own_files(), sha256={"selftest.py": "f" * 64}))
    table = json.loads(texts(a_test(program="f" * 64), lock=lock)["test-result"])
    one = table["predicate"]["reprobuild"]["report"]["checks"]
    del one[1:]
    table["predicate"]["passedTests"] = ["conv2d"]
    team.documents = signed({**texts(lock=lock), "test-result": json.dumps(table).encode()}, team.key)
    found = team.judge(lock=lock)
    assert found.good
    (text,) = found.unknown
    assert text == (
        "whether the report has all checks of its self-test, which is another release's (ffffffffffff):"
        " it has 1"
    )
    assert not Team(team.folder / "other").judge(lock=a_lock()).unknown


def test_without_the_image_s_lock_it_is_said_that_nothing_is_compared_with_it(team: Team) -> None:
    """A registry that withholds the layer of the lock must not pass for one that gave it."""
    found = team.judge()
    assert found.good
    assert found.unknown == (
        "whether the evidence matches the lock in the image: no lock could be read from the image",
    )
    team.documents.clear()
    assert not team.judge().unknown


def test_who_signs_the_evidence_is_no_other_builder(team: Team) -> None:
    text = rebuilt(SUBJECT, a_lock().digest, MADE)
    team.documents["rebuild"] = sign(text, read_private_key(team.key, str))
    both = [*team.policy.keys, team.vote("one")]
    assert team.judge(builders=1, builder_keys=both).good
    found = refused(team.judge(builders=2, builder_keys=both))
    assert "other builders that rebuilt it: 1, and the policy asks for 2" in found
    assert "rebuild: is signed by a key that keys has too, so by no other builder" in found
    assert len(team.judge(builders=2, builder_keys=both).builders) == 1


def test_a_key_for_evidence_is_no_builder_s(team: Team) -> None:
    text = rebuilt(SUBJECT, a_lock().digest, MADE)
    team.documents["rebuild"] = sign(text, read_private_key(team.key, str))
    builder = read_public_key(write_key(team.folder, "builder").with_suffix(".pub"))
    assert "builders that rebuilt it: 0" in refused(team.judge(builders=1, builder_keys=[builder]))
    assert not team.judge(builders=1, builder_keys=[builder]).builders


def test_a_builder_s_key_signs_no_evidence(team: Team) -> None:
    builder = write_key(team.folder, "builder")
    team.documents = signed(texts(), builder)
    found = team.judge(builder_keys=[read_public_key(builder.with_suffix(".pub"))])
    assert "is signed by another key" in refused(found)


def test_what_does_not_count_is_listed_beside_what_does(team: Team) -> None:
    team.documents["junk"] = b"\x00"
    found = team.judge()
    assert found.good
    assert [line.partition(": ")[0] for line in found.ignored] == ["junk"]
