"""TOML of a stranger's is parsed within bounds."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprobuild.errors import LockError, RequestError
from reprobuild.lock.reader import parse_lock
from reprobuild.request.model import Request
from reprobuild.request.toml_reader import load_toml

_PARTS = "line 1 has a key of more than 16 parts"
LONG = {
    "a dotted key": (".".join("a" * 50_000) + " = 1", _PARTS),
    "a table": ("[" + ".".join("a" * 50_000) + "]", _PARTS),
    "an inline table": ("x = {" + " . ".join("a" * 50_000) + " = 1}", _PARTS),
    "quoted parts": (".".join(["'a b'", '"c"'] * 20_000) + " = 1", _PARTS),
    "after text": ('x = {s = \'a"\', t = "\\"", ' + ".".join("a" * 50_000) + " = 1}", _PARTS),
    "after lines of text": ('x = ["""""", {' + ".".join("a" * 50_000) + ' = 1}, """"""]', _PARTS),
    "nested lists": ("x = " + "[" * 100_000, "it is nested too deeply"),
    "nested tables": ("x = " + "{a=" * 100_000, "it is nested too deeply"),
    "one word": ("a" * 4_000_000 + ".b" * 15, "Expected '='"),
    "text": ("#" * (9 << 20), "it has more than 8,388,608 characters"),
}
"""What to parse, and the reason: the bound that was met. Without it some of these take minutes."""


@pytest.mark.parametrize("what", LONG)
def test_what_would_take_minutes_is_refused_at_once(what: str) -> None:
    text, reason = LONG[what]
    with pytest.raises(LockError, match=f"pylock: not valid TOML: {reason}"):
        parse_lock(text, "pylock")
    with pytest.raises(RequestError, match=f"envs: not valid TOML: {reason}"):
        Request.load(text, "envs")


def test_the_line_is_named() -> None:
    with pytest.raises(ValueError, match="line 3 has a key of more than 16 parts"):
        load_toml("a = 1\n\n" + ".".join("b" * 17) + " = 1\n")
    assert load_toml(".".join("b" * 16) + " = 1\n")


def test_the_dots_of_text_are_none_of_a_key() -> None:
    name = f"glfw-2.9.0-{'.'.join(f'p{n}' for n in range(30))}-none-any.whl"
    assert load_toml(f"a = [{{ url = \"{name}\", b = '{name}' }}] # {name[:9]}\n") == {
        "a": [{"url": name, "b": name}]
    }


@given(st.text(st.sampled_from("ab.\"' =[]{}1\n,#"), max_size=60))
def test_what_is_within_the_bounds_reads_as_the_standard_library_does(text: str) -> None:
    try:
        expected: object = tomllib.loads(text)
    except ValueError as error:
        expected = str(error)
    try:
        found: object = load_toml(text)
    except ValueError as error:
        found = str(error)
    assert found == expected or "more than 16 parts" in str(found)
