"""Names that are close to a misspelled one."""

from __future__ import annotations

import pytest

from reprobuild.net.session import session
from reprobuild.resolve.advice.case import Case
from reprobuild.resolve.advice.typo_hints import advise
from reprobuild.resolve.uv_refusal import refused
from support.resolving import resolution

pytest_plugins = ["support.family"]


NO_SOLUTION = "error: No solution found when resolving dependencies\n  cause: "


@pytest.mark.parametrize(
    ("name", "meant"),
    [("sklearn", "scikit-learn"), ("tranformers", "transformers"), ("sent-of-nobody", None)],
)
def test_a_misspelt_name(name: str, meant: str | None) -> None:
    error = refused(
        NO_SOLUTION + f"Because {name} was not found in the package registry and you require {name}"
    )
    with session() as http:
        hint = "".join(advise(Case(error=error, requirements=[name], resolution=resolution(http))).lines)
    assert (f"{name}: did you mean {meant}" in hint) == (meant is not None)
    assert ("did you mean" in hint) == (meant is not None)
