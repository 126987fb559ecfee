from __future__ import annotations

import math
import struct

from reprobuild.selftest.distance import ENDLESS, largest_ulp, of_values, ulp


def test_neighbours_are_one_apart_also_across_zero() -> None:
    assert ulp(1.0, 1.0 + 2**-23) == 1
    assert ulp(1.0, 1.0 + 2**-52) == 1  # no float32
    assert ulp(0.0, -0.0) == 0
    assert largest_ulp(struct.pack("f", 1e-45), struct.pack("f", -1e-45), "float32") == 2


def test_numbers_that_are_none() -> None:
    assert ulp(math.nan, math.nan) == 0
    assert ulp(1.0, math.nan) == ENDLESS
    assert of_values((1.0,), ()) is None


def test_types_that_are_no_floats_have_no_distance() -> None:
    assert largest_ulp(b"12", b"13", "int16") is None
    assert largest_ulp(b"123", b"124", "float16") is None
