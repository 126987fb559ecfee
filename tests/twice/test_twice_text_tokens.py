"""Lines in pieces, and with what was drawn or measured replaced by what it is."""

from __future__ import annotations

import pytest

from reprobuild.twice.derived_items import Item
from reprobuild.twice.evidence import Evidence
from reprobuild.twice.text_tokens import general, tokens

SITE = ("text", "train.py", 3, 0)


def test_millionths_after_a_date_in_a_name_are_those_of_a_date_that_was_asked_for() -> None:
    evidence = Evidence(items=[Item(("moment", "log.py", 3, 0), 1795657967.642869, 0, 0)])
    assert general("log_642869 642868", evidence) == "log_<time of day> 642868"


def test_names_without_what_was_drawn_are_equal() -> None:
    evidence = Evidence(
        names={"uuids": ("39e69f7b-b683-4df5-bc85-986a157e7106",), "temporary names": ("ab12cd34",)}
    )
    assert general("runs/39e69f7bb6834df5bc85986a157e7106/x", evidence) == "runs/<uuid 0>/x"
    assert general("/tmp/tmpab12cd34/x39e69f7b", evidence) == "/tmp/tmp<temporary name 0>/x<uuid 0>"


def test_a_drawn_name_may_be_of_several_words() -> None:
    evidence = Evidence(names={"drawn names": ("sly-owl-3", "calm-owl-31")})
    assert general("run calm-owl-31, uncalm-owl-31", evidence) == "run <drawn name 1>, uncalm-owl-31"
    assert general("sly-owl-3 of sly-owl-35", evidence) == "<drawn name 0> of sly-owl-35"


def test_a_temporary_name_may_begin_with_digits_behind_a_process_number() -> None:
    evidence = Evidence(names={"process numbers": ("1234",), "temporary names": ("91kj6ka5", "5e8_abcd")})
    told = "/tmp/psi.<process numbers 0>.<temporary name 0>"
    assert general("/tmp/psi.1234.91kj6ka5", evidence) == told
    assert general("/tmp/psi.1234.5e8_abcd", evidence) == told.replace("name 0", "name 1")
    assert general("1234.91kj6ka6 1234.91", evidence) == "1234.91kj6ka6 1234.91"


def test_a_uuid_may_stand_behind_a_name_with_underscores() -> None:
    evidence = Evidence(names={"uuids": ("a7bc8fe5-439d-4f17-aff8-ab0fb3736cfe",)})
    assert general("logs/CartPole-v1_1_a7bc8fe5-439d-4f17-aff8-ab0fb3736cfe/x", evidence) == (
        "logs/CartPole-v1_1_<uuid 0>/x"
    )
    other = "run_a7bc8fe5-439d-4f17-aff8-ab0fb3736cf0"
    assert general(other, evidence) != general(other.replace("cf0", "cf1"), evidence)


def test_a_drawn_name_may_have_few_digits() -> None:
    evidence = Evidence(names={"drawn names": ("d1ce",)})
    assert general("run T1-d1ce, T1-d1ces, dice", evidence) == "run T1-<drawn name 0>, T1-d1ces, dice"


def test_a_drawn_name_may_begin_like_a_time() -> None:
    evidence = Evidence(names={"uuids": ("15315687-97d2-46b9-976a-fda8385ac64b",)})
    assert general("run 1531568797d246b9976afda8385ac64b", evidence) == "run <uuid 0>"


def test_a_drawn_name_may_stand_behind_a_date_or_in_a_folder_by_its_first_digits() -> None:
    names = {"drawn names": ("UXGMV1A3", "75e2e79c51d04b5f")}
    evidence = Evidence(names=names, began=1795657966.0, ended=1795657969.0, zones=(0,))
    assert general("261126015247UXGMV1A3_add", evidence) == "<time of day><drawn name 0>_add"
    assert general("work/75/e2e79c/out", evidence) == "work/<drawn name 1>/out"
    assert general("work/75/e2e79d/out", evidence) == "work/75/e2e79d/out"


@pytest.mark.parametrize(
    ("text", "turns", "counts"), [("531", 600, True), ("531", 16, False), ("12.345", 600, False)]
)
def test_by_itself_a_short_number_that_any_of_many_times_may_be_is_a_result(
    text: str, turns: int, counts: bool
) -> None:
    evidence = Evidence(items=[Item(SITE, text, 7, turns - 8)])
    assert (general(f"correct {text}", evidence) == f"correct {text}") is counts


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("2448", "last 4 digits of the time"),
        ("02448", "last 5 digits of the time"),
        ("902448", "last 6 digits of the time"),
        ("2460", ""),  # after the run
        ("448", ""),
        ("2448.5", ""),
    ],
)
def test_the_last_digits_of_the_time_are_known(text: str, key: str) -> None:
    [token] = tokens(text, Evidence(began=1_795_902_447.5, ended=1_795_902_455.0))
    assert token.key == key
    [token] = tokens(text, Evidence(began=1_795_902_447.5, ended=1_795_906_455.0))  # by chance
    assert not token.key
