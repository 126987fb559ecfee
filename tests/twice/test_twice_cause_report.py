"""What the report says of a cause, the line to look at first in its first row."""

from __future__ import annotations

from dataclasses import replace

from reprobuild.twice import known_causes
from reprobuild.twice.cause_report import cause_json, cause_rows, listed, ulp_text
from reprobuild.twice.causes import Cause, Trial
from reprobuild.twice.external_values import Candidate
from support.streams import at

CLOCK = Candidate("clock", "time.time", at(4, "seed = int(time.time())"), ("1", "2"), 0, 0)
CAUSE = Cause(
    kind="random",
    operation="randn.default",
    place=at(6, "x = torch.randn(3)"),
    module="",
    stream="",
    backward=False,
    thread="",
    shapes=(),
    ulp=None,
    deterministic=True,
    remedy=known_causes.RANDOM,
    candidates=(CLOCK,),
    told="its random generator was in another state in each run",
)


def test_what_is_proven_to_have_given_the_value_comes_before_where_it_went() -> None:
    first, second, *_ = cause_rows(CAUSE)
    assert first == ("from outside", "time.time gave 1 and 2 at /code/train.py:4: `seed = int(time.time())`")
    assert second[0] == "first draw"
    told = cause_json(CAUSE) or {}
    assert (told["line"], told["text"], told["operation_at"]) == (4, CLOCK.place.text, "/code/train.py:6")


def test_of_a_default_for_a_seed_who_gave_none_is_told_beside() -> None:
    default = replace(CLOCK, made_for=at(30, "main()"))
    text = next(cause_rows(replace(CAUSE, candidates=(default,))))[1]
    assert text.endswith("`seed = int(time.time())`, for /code/train.py:30: `main()`")
    own = replace(CLOCK, made_for=CLOCK.place)
    assert next(cause_rows(replace(CAUSE, candidates=(own,))))[1].endswith("`seed = int(time.time())`")
    told = cause_json(replace(CAUSE, candidates=(default,))) or {}
    assert told["from_outside"][0]["made_for"] == "/code/train.py:30"


def test_of_a_query_who_asks_it_is_told_where_that_is_another_line() -> None:
    tied = replace(CLOCK, kind="hint", name=known_causes.TIED, made_for=at(30, "con.execute(query)"))
    text = next(cause_rows(replace(CAUSE, candidates=(tied,))))[1]
    assert text.endswith(", asked at /code/train.py:30: `con.execute(query)`")
    alone = replace(tied, made_for=tied.place)
    assert "asked at" not in next(cause_rows(replace(CAUSE, candidates=(alone,))))[1]
    dropout = replace(tied, name=known_causes.DROPPED, made_for=at(30, "model.load_state_dict(state)"))
    text = next(cause_rows(replace(CAUSE, candidates=(dropout,))))[1]
    assert text.endswith(", for /code/train.py:30: `model.load_state_dict(state)`")


def test_what_only_differed_comes_after_the_operation() -> None:
    doubtful = replace(CAUSE, proven=False)
    assert [heading for heading, _ in cause_rows(doubtful)] == ["first draw", "", "candidate"]
    assert (cause_json(doubtful) or {})["line"] == 6


def test_what_an_operation_computed_otherwise_is_its_own() -> None:
    computed = replace(CAUSE, kind="operation", ulp=3)
    assert [heading for heading, _ in cause_rows(computed)][:3] == ["first operation", "", "from outside"]
    assert (cause_json(computed) or {})["line"] == 6


def test_without_an_operation_only_several_that_are_not_proven_are_in_doubt() -> None:
    told = "no operation of torch differed"
    source = replace(CAUSE, kind="source", operation="", place=CLOCK.place, told=told)
    rows = [*cause_rows(replace(source, trials=(Trial("the clock frozen", repeats=True),)))]
    assert [heading for heading, _ in rows] == ["from outside", "", "experiment", "why", "remedy"]
    assert rows[1:3] == [("", told), ("experiment", "with the clock frozen, it repeats: this is proven")]
    assert (cause_json(source) or {})["operation_at"] == ""
    doubtful = replace(source, proven=False, candidates=(CLOCK, replace(CLOCK, name="time.time_ns")))
    assert next(cause_rows(doubtful)) == ("not proven", f"{told}; one of these may be the cause")


def test_words_and_distances_for_a_reader() -> None:
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert (ulp_text(None), ulp_text(2), cause_json(None)) == ("", "2 ULP", None)
