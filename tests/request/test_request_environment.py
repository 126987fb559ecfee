"""The variables of a request's own."""

from __future__ import annotations

from dataclasses import replace

from reprobuild.request import environment
from reprobuild.request.kernels import Kernels
from reprobuild.request.profiles import LIBRARY_THREADS, surroundings, variables
from support.profiled import STRICT


def test_the_request_s_own_variables_are_set_and_none_of_ours_is_among_them() -> None:
    asked = replace(STRICT, environment=(("HF_HOME", "/data"),))
    assert variables(asked)["HF_HOME"] == "/data"
    every = replace(STRICT, profile="portable", seed=1, fill=True, kernels=Kernels(locked=True))
    every = replace(every, seed_by_rank=True)
    ours = variables(every, "2.0").keys() | surroundings().keys() | surroundings(conda=True).keys()
    assert {*environment.OWN, *LIBRARY_THREADS} == ours
    assert not {*environment.OWN} & {*LIBRARY_THREADS}
