from __future__ import annotations

import pytest

from reprobuild.errors import LockError, RequestError
from reprobuild.request.table import Table, TableError, refused_as, shown

TABLE = Table({"a": {"b": [{"c": 1}, {"c": "x"}]}, "n": None, "t": True, "long": "x" * 5000})


def test_a_place_is_the_way_through_the_file() -> None:
    first, second = TABLE.table("a").tables("b", ("c",))
    assert first.integer("c", 0, 9) == 1
    with pytest.raises(TableError, match=r"^a\.b\[1\]\.c: expected a whole number, got 'x'$"):
        second.integer("c", 0, 9)
    with pytest.raises(TableError, match=r"^a\.b\[0\]\.c: unknown key$") as caught:
        TABLE.table("a").tables("b", ("d", "e"))
    assert caught.value.hint == "known keys: d, e"


def test_what_is_missing_is_an_error_where_there_is_no_default() -> None:
    assert TABLE.text("z", bool, "some text", None) is None
    with pytest.raises(TableError, match=r"^z: missing$"):
        TABLE.text("z", bool, "some text")


@pytest.mark.parametrize("key", ["n", "t"])
def test_null_and_true_are_no_numbers(key: str) -> None:
    with pytest.raises(TableError, match=f"^{key}: expected a whole number, got (None|True)$"):
        TABLE.integer(key, 0, 9, 5)


def test_what_a_message_quotes_is_short() -> None:
    with pytest.raises(TableError) as caught:
        TABLE.sha256("long")
    assert len(str(caught.value)) < 300
    assert shown("a\nb") == r"'a\nb'"


def test_the_file_s_name_is_added_on_the_way_out() -> None:
    with (
        pytest.raises(LockError, match=r"^pylock: a: no$") as caught,
        refused_as(LockError, "pylock", "lock"),
    ):
        raise TABLE.bad("a", "no", "yes")
    assert caught.value.hint == "lock"
    with pytest.raises(RequestError) as caught_too, refused_as(RequestError, "envs"):
        raise TABLE.bad("a", "no", "yes")
    assert caught_too.value.hint == "yes"


def test_a_number_of_any_length_is_told_what_is_expected() -> None:
    table = Table({"n": 10**5000, "m": 10**70, "x": float("nan")})
    with pytest.raises(TableError, match=r"^n: what is too long to show is out of range: expected 0 to 9$"):
        table.integer("n", 0, 9)
    with pytest.raises(TableError, match=r"^m: 10{70} is out of range: expected 0 to 9$"):
        table.integer("m", 0, 9)
    with pytest.raises(TableError, match=r"^x: nan is out of range$"):
        table.hold("x", float)
