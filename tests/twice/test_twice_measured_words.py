"""The bytes of measured numbers."""

from __future__ import annotations

import struct

from reprobuild.twice.derived_items import Item
from reprobuild.twice.evidence import Evidence
from reprobuild.twice.measured_words import measured_words

SPAN = Item(("span", "train.py", 3, 0), 0.132176, 0, 0)
SHORT = Item(("span", "train.py", 4, 0), 0.000176, 0, 0)


def test_a_duration_is_known_where_a_type_of_durations_is_named() -> None:
    evidence = Evidence(items=[SPAN, SHORT])
    words = {struct.pack("<q", each): "span 0:00:00.132176" for each in (132176, 132176000)}
    assert measured_words(evidence, has_spans=True) == words
    assert measured_words(evidence, has_spans=False) == {}


def test_a_process_number_may_be_a_number_with_a_point() -> None:
    words = measured_words(Evidence(names={"process numbers": ("4321", "99")}), has_spans=False)
    assert words == {struct.pack("<q", 4321): "whole 4321", struct.pack("<d", 4321.0): "double 4321.0"}


def test_a_long_number_is_known_in_either_order_of_its_bytes() -> None:
    value = 0.123456789012
    words = measured_words(Evidence(items=[Item(("value", "train.py", 3, 0), value, 0, 0)]), has_spans=False)
    assert words == {
        struct.pack("<d", value): f"double {value}",
        struct.pack(">d", value): f"reversed double {value}",
    }
