"""The report as text."""

from __future__ import annotations

import reprobuild.in_image.selftest.command_line  # noqa: F401 -- the checks are registered
from reprobuild.in_image.selftest.text import cost_text


def test_costs_as_text_have_a_line_each_and_the_reason_of_those_not_measured() -> None:
    line = {"device": "cpu", "on": 0.004, "off": 0.002, "ratio": 2.0, "reason": ""}
    missing = {"name": "sort", "device": "cuda", "reason": "RuntimeError: no"}
    gpu = {"tested": False, "reason": "no driver"}
    text = cost_text({"costs": [{"name": "index_put", **line}, missing], "gpu": gpu})
    assert [" ".join(each.split()) for each in text.splitlines()] == [
        "device operation on off on/off",
        "cpu index_put 4.000 ms 2.000 ms 2.00",
        "cuda sort RuntimeError: no",
        "GPU not measured: no driver",
    ]
