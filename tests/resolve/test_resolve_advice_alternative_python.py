"""A release that has wheels for another Python than the one asked for."""

from __future__ import annotations

import pytest

from reprobuild.errors import ResolveError
from reprobuild.net.session import session
from reprobuild.resolve.advice.alternative_python import other_python
from reprobuild.resolve.constraint_loop import fitting
from support.index import Index
from support.resolving import request, resolution


def named(pin: str, *others: str) -> str | None:
    with session(retries=0) as http:
        return other_python(pin, others, resolution(http))


@pytest.fixture(autouse=True)
def _wheels(index: Index) -> None:
    for python in ("36", "38", "39", "310"):
        index.add("mesh", "0.13.0", tag=f"cp{python}-cp{python}-manylinux_2_17_x86_64")
    index.add("mesh", "0.19.0", tag="cp311-cp311-manylinux_2_17_x86_64")
    index.add("late", "2.0", tag="cp311-cp311-manylinux_2_17_x86_64")
    index.add("pure", "1.0")
    index.add("early", "1.0", tag="cp38-cp38-manylinux_2_17_x86_64")


def test_the_first_that_has_one() -> None:
    line = "mesh==0.13.0 has wheels for Python 3.8, 3.9, 3.10: give --python 3.10 (python in the request)"
    assert named("mesh==0.13.0", "pure==1.0", "unknown==1", "late>=2") == line


def test_the_one_that_the_other_pins_have_wheels_for_too() -> None:
    assert "give --python 3.8 " in str(named("mesh==0.13.0", "early==1.0", "pure==1.0"))


def test_none() -> None:
    assert named("late==2.0") is None
    assert named("unknown==1.0") is None


def test_what_uv_refuses_names_it() -> None:
    with session(retries=0) as http, pytest.raises(ResolveError) as caught:
        fitting(["mesh==0.13.0"], resolution(http, request(packages=["mesh==0.13.0"])))
    assert "mesh==0.13.0 has wheels for Python 3.8, 3.9, 3.10: give --python 3.10 " in caught.value.hint
