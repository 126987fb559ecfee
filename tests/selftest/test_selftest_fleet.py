"""Many machines: who has which bits, who deviates from its own kind."""

from __future__ import annotations

import json
from typing import Any

from reprobuild.selftest.fleet import Fleet, Machine, fleet
from support.reports import HASH, OTHER, a_check, floats, report, with_bits

AMD: dict[str, Any] = {"model": "AMD"}


def machines(**bits: tuple[str, dict[str, Any]]) -> Fleet:
    """A fleet of machines by name: the bits of conv2d, and what is special of the CPU."""
    return fleet(
        [
            Machine(name=name, report=report(with_bits(found, values={"output": floats(1.0)}), cpu=cpu))
            for name, (found, cpu) in bits.items()
        ]
    )


def states(found: Fleet) -> dict[str, tuple[str, str]]:
    (row,) = found.rows
    return {cell.machine: (cell.bits, cell.state) for cell in row.cells}


def test_the_odd_one_out_of_a_kind_deviates() -> None:
    found = machines(a=(HASH, {}), b=(OTHER, {}), c=(HASH, {}), d=(OTHER, AMD))
    assert states(found) == {
        "a": ("A", "agrees"),
        "b": ("B", "deviates"),
        "c": ("A", "agrees"),
        "d": ("B", "alone"),
    }
    (deviation,) = found.deviations
    assert (deviation.machine, deviation.check, deviation.others) == ("b", "conv2d", ("a", "c"))
    assert deviation.results == ("output",)


def test_kinds_may_differ_from_each_other() -> None:
    found = machines(a=(HASH, {}), b=(HASH, {}), c=(OTHER, AMD), d=(OTHER, AMD))
    assert found.deviations == ()
    assert {state for _, state in states(found).values()} == {"agrees"}


def test_without_a_majority_both_are_named() -> None:
    found = machines(a=(HASH, {}), b=(OTHER, {}))
    assert [(each.machine, each.others) for each in found.deviations] == [("a", ("b",)), ("b", ("a",))]


def test_reports_of_two_programs_blame_no_machine() -> None:
    programs = {"a": HASH, "b": HASH, "c": OTHER}
    found = fleet(
        [
            Machine(name=name, report=report(with_bits(program), program=program))
            for name, program in programs.items()
        ]
    )
    assert found.deviations == ()
    assert states(found)["c"] == ("B", "alone")
    assert found.programs == {HASH: ("a", "b"), OTHER: ("c",)}


def test_golden_results_must_agree_across_kinds() -> None:
    found = fleet(
        [
            Machine(name=name, report=report(with_bits(bits, scope="any"), cpu={"model": name}))
            for name, bits in (("a", HASH), ("b", HASH), ("c", OTHER))
        ]
    )
    assert [each.machine for each in found.deviations] == ["c"]


def test_a_machine_without_a_result_says_why() -> None:
    none = a_check(status="not-run", reason="no gloo", results={}, values={})
    reports = {
        "a": report(with_bits(HASH)),
        "b": report(none, with_bits(HASH, name="bmm")),
        "c": report(with_bits(HASH, name="bmm")),
    }
    found = fleet([Machine(name=name, report=each) for name, each in reports.items()])
    rows = {row.name: {cell.machine: (cell.state, cell.reason) for cell in row.cells} for row in found.rows}
    assert rows["conv2d"] == {
        "a": ("alone", ""),
        "b": ("no result", "no gloo"),
        "c": ("no result", "not in the report"),
    }
    assert rows["bmm"]["b"] == ("agrees", "")


def test_distances_are_from_the_first_machine_with_a_result() -> None:
    values = {"a": 1.0, "b": 1.0 + 2.0**-23, "c": 1.0 + 2.0**-20}
    found = fleet(
        [
            Machine(
                name=name,
                report=report(with_bits(str(i) * 64, values={"output": floats(value)}), cpu={"model": name}),
            )
            for i, (name, value) in enumerate(values.items())
        ]
    )
    assert [cell.ulp for cell in found.rows[0].cells] == [0, 1, 8]
    assert [cell.bits for cell in found.rows[0].cells] == ["A", "B", "C"]


def test_json_names_machines_checks_and_deviations() -> None:
    table = json.loads(json.dumps(machines(a=(HASH, {}), b=(OTHER, {}), c=(HASH, {})).to_dict()))
    assert [each["name"] for each in table["machines"]] == ["a", "b", "c"]
    assert table["machines"][0]["scope"]["cpu"]["threads"] == 1
    assert [cell["bits"] for cell in table["checks"][0]["cells"]] == ["A", "B", "A"]
    assert table["deviations"][0]["machine"] == "b"


def test_more_machines_than_letters() -> None:
    found = machines(**{f"m{i}": (f"{i:064x}", {"model": str(i)}) for i in range(28)})
    assert [cell.bits for cell in found.rows[0].cells][25:] == ["Z", "AA", "AB"]
