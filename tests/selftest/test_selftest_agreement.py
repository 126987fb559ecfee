"""Two reports: equal, differing, or of two kinds of machine."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reprobuild.in_image.selftest.command_line  # noqa: F401 -- the checks are registered
from reprobuild.in_image.selftest.registry import CHECKS
from reprobuild.selftest.agreement import compare, ulp
from support.reports import OTHER, a_check, floats, report, with_bits

ONE, TWO = with_bits("b" * 64), with_bits(OTHER)


def test_the_same_bits_agree() -> None:
    (found,) = compare(report(ONE), report(ONE))
    assert (found.name, found.state, found.reason, found.results, found.ulp) == ("conv2d", "equal", "", (), 0)


def test_other_bits_on_one_kind_differ_by_name_and_distance() -> None:
    first, second = (
        with_bits(bits, values={"output": floats(1.0, value)})
        for bits, value in (("b" * 64, 2.0), (OTHER, 2.0 + 3 * 2.0**-22))
    )
    (found,) = compare(report(first), report(second))
    assert (found.state, found.results, found.ulp) == ("differs", ("output",), 3)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"cpu": {"threads": 2}}, "threads: 1 and 2"),
        ({"cpu": {"capability": "AVX512"}}, "capability: AVX2 and AVX512"),
        ({"cpu": {"model": "X"}}, "CPU: Some CPU (family 25 model 17 stepping 1) and X (family"),
        ({"cpu": {"mkl_cbwr": "COMPATIBLE"}}, "MKL_CBWR: AUTO and COMPATIBLE"),
        ({"cpu": {"onednn_max_cpu_isa": "AVX2"}}, "ONEDNN_MAX_CPU_ISA: None and AVX2"),
        ({"versions": {"torch": "2.4.1+cpu"}}, "torch: 2.4.1+cu121 and 2.4.1+cpu"),
        ({"versions": {"numpy": "2.0.0"}}, "NumPy: 1.26.4 and 2.0.0"),
    ],
)
def test_two_kinds_of_cpu_are_not_comparable(change: dict[str, Any], reason: str) -> None:
    for other in (ONE, TWO):
        (found,) = compare(report(ONE), report(other, **change))
        assert found.state == "not comparable"
        assert found.reason.startswith(reason)
        assert found.results == (() if other is ONE else ("output",))
        assert found.ulp == 0


def test_two_architectures_of_processors_are_two_kinds_for_a_gpu_too() -> None:
    one, two = with_bits("b" * 64, device="cuda"), with_bits(OTHER, device="cuda")
    (found,) = compare(report(one), report(two, cpu={"machine": "aarch64"}))
    assert (found.state, found.reason) == ("not comparable", "architecture: x86_64 and aarch64")


@pytest.mark.parametrize(
    "change",
    [
        *({"name": "H100"}, {"sm_count": 132}, {"driver": "570.1"}, {"driver": None}),
        *({"cublas_workspace": ":16:8"}, {"cublaslt_workspace": "1024"}),
    ],
)
def test_two_kinds_of_gpu_are_not_comparable_and_the_cpu_is_no_matter(change: dict[str, Any]) -> None:
    one, two = with_bits("b" * 64, device="cuda"), with_bits(OTHER, device="cuda")
    assert compare(report(one), report(two, gpu=change))[0].state == "not comparable"
    assert compare(report(one), report(two, cpu={"model": "X", "threads": 9}))[0].state == "differs"
    assert compare(report(ONE), report(TWO, gpu=change))[0].state == "differs"


@pytest.mark.parametrize("key", ["driver", "ecc", "mig", "max_sm_mhz", "power_limit_mw"])
def test_what_a_gpu_does_not_tell_makes_even_equal_bits_not_comparable(key: str) -> None:
    one = with_bits("b" * 64, device="cuda")
    (found,) = compare(report(one, gpu={key: None}), report(one, gpu={key: None}))
    assert (found.state, found.reason.partition(": ")[2]) == ("not comparable", "not known")
    assert compare(report(ONE, gpu={key: None}), report(ONE, gpu={key: None}))[0].state == "equal"
    assert compare(report(one, gpu={key: "on"}), report(one, gpu={key: "on"}))[0].state == "equal"
    assert compare(report(one, gpu={key: "on"}), report(one))[0].state == "not comparable"


def test_the_other_gpus_are_part_of_the_kind_where_they_are_used() -> None:
    states = {"torch-seed": "not comparable", "ranks-nccl": "not comparable", "bmm": "differs"}
    for name, state in states.items():
        one, two = (with_bits(bits, device="cuda", name=name) for bits in ("b" * 64, OTHER))
        assert compare(report(one, gpu={"devices": "A"}), report(two, gpu={"devices": "B"}))[0].state == state


def test_every_check_that_counts_the_gpus_has_all_of_them_in_its_kind() -> None:
    counting = {name for name, check in CHECKS.items() if "device_count" in check.run.__code__.co_names}
    assert counting == {"ranks-nccl", "sums-nccl", "torch-seed", "generator-state"}
    for name in counting:
        one, two = (with_bits(bits, device="cuda", name=name) for bits in ("b" * 64, OTHER))
        found = compare(report(one, gpu={"devices": "A"}), report(two, gpu={"devices": "A; A"}))
        assert found[0].state == "not comparable", name


def test_nccl_s_version_and_algorithm_are_part_of_the_kind_of_its_checks_alone() -> None:
    by_nccl = {name for name in CHECKS if name.endswith("-nccl")}
    for name in (*by_nccl, "matmul"):
        one, two = (with_bits(bits, device="cuda", name=name) for bits in ("b" * 64, OTHER))
        for gpu in ({"nccl_algo": "allreduce:tree"}, {"nccl": "2.28.9"}):
            state = compare(report(one), report(two, gpu=gpu))[0].state
            assert state == ("not comparable" if name in by_nccl else "differs"), (name, gpu)


def test_golden_results_are_comparable_on_all_machines_with_the_same_versions() -> None:
    one, two = with_bits("b" * 64, scope="any"), with_bits(OTHER, scope="any")
    elsewhere = {"cpu": {"model": "X", "threads": 9, "capability": "DEFAULT"}, "gpu": {"name": "X"}}
    assert compare(report(one), report(two, **elsewhere))[0].state == "differs"
    assert compare(report(one), report(one, **elsewhere))[0].state == "equal"
    # The build of torch does not matter, its release does.
    assert compare(report(one), report(two, versions={"torch": "2.4.1+cpu"}))[0].state == "differs"
    for versions in ({"torch": "2.5.0"}, {"python": "3.13.1"}, {"numpy": "2.0.0"}):
        assert compare(report(one), report(two, versions=versions))[0].state == "not comparable"
    assert compare(report(one), report(two, cpu={"machine": "aarch64"}))[0].state == "not comparable"


@pytest.mark.parametrize("scope", ["any", "kind"])
def test_two_programs_are_not_comparable_and_no_machine_is_blamed(scope: str) -> None:
    one, two = with_bits("b" * 64, scope=scope), with_bits(OTHER, scope=scope)
    (found,) = compare(report(one), report(two, program=OTHER))
    assert (found.state, found.reason) == ("not comparable", "another self-test program")


def test_only_checks_with_results_in_both_are_compared() -> None:
    none = a_check(name="raises", results={}, values={})
    first = report(none, ONE, with_bits(OTHER, name="bmm"))
    assert [each.name for each in compare(first, report(ONE, none))] == ["conv2d"]
    assert compare(first, report(a_check(device="cuda"))) == ()


# --- Units in the last place ---

finite = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(finite, finite)
def test_distance_is_symmetric_and_zero_for_equal_values_alone(a: float, b: float) -> None:
    there, back = ulp(floats(a), floats(b)), ulp(floats(b), floats(a))
    assert there == back
    assert (there == 0) == (a == b)


@given(finite, finite, finite)
def test_distances_along_a_line_add_up(a: float, b: float, c: float) -> None:
    low, middle, high = (floats(value) for value in sorted((a, b, c)))
    parts = ulp(low, middle), ulp(middle, high)
    assert parts[0] is not None
    assert parts[1] is not None
    assert ulp(low, high) == parts[0] + parts[1]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (floats(1.0), floats(1.0 + 2.0**-23), 1),
        (floats(1.0), floats(1.0 - 2.0**-24), 1),
        (floats(0.0), floats(-0.0), 0),
        (floats(2.0**-149), floats(-(2.0**-149)), 2),
        (floats(1.0, 5.0), floats(1.0 + 2.0**-23, 5.0), 1),
        ({"type": "bfloat16", "data": "gD8="}, {"type": "bfloat16", "data": "gT8="}, 1),
        ({"type": "float64", "data": "AAAAAAAA8D8="}, {"type": "float64", "data": "AQAAAAAA8D8="}, 1),
        (floats(1.0), floats(1.0, 2.0), None),
        (floats(1.0), {"type": "float16", "data": "ADw="}, None),
        ({"type": "int8", "data": "AA=="}, {"type": "int8", "data": "AA=="}, None),
        ({"type": "float32", "data": "?"}, floats(1.0), None),
        ({"type": "float32", "data": "AAA="}, floats(1.0), None),
    ],
)
def test_units_in_the_last_place(first: dict[str, str], second: dict[str, str], expected: int | None) -> None:
    assert ulp(first, second) == expected
