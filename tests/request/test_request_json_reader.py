"""JSON of a stranger's: each key once, plain numbers, and no more values than memory is for."""

from __future__ import annotations

import pytest

from reprobuild.request import json_reader
from reprobuild.request.json_reader import hold_values, load_json
from reprobuild.request.toml_reader import load_toml


@pytest.mark.parametrize(
    "text", ['{"a":1,"a":2}', '[{"a":1,"a":1}]', "[NaN]", "[-Infinity]", "[" * 100_000, "{"]
)
def test_what_tools_read_in_two_ways_is_refused(text: str) -> None:
    for data in (text, text.encode()):
        with pytest.raises(ValueError):  # noqa: PT011 -- of any kind
            load_json(data)


def test_a_text_of_many_values_is_refused_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_reader, "MOST_VALUES", 1000)
    for text in ("[" + "[]," * 600 + "[]]", "[" + '{"a":0},' * 600 + "0]"):
        for data in (text, text.encode()):
            with pytest.raises(ValueError, match="it has more than 1,000 values"):
                hold_values(data)
        with pytest.raises(ValueError, match="it has more than 1,000 values"):
            load_json(text)
    assert load_json("[" + "1," * 998 + "1]")[-1] == 1


def test_a_number_of_many_digits_is_no_matter_of_python_s_settings() -> None:
    for read, text in ((load_json, "[" + "9" * 5000 + "]"), (load_toml, "a = " + "9" * 5000)):
        with pytest.raises(ValueError, match=r"^a number has too many digits$"):
            read(text)
