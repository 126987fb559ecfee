from __future__ import annotations

import pytest

from reprobuild.twice.known import COLLECTIVE, UNKNOWN, of_operation


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("index_put_.default", "use_deterministic_algorithms"),
        ("scatter_add.out", "use_deterministic_algorithms"),
        ("cumsum.default", "another operation"),
        ("put_.default", "another operation"),
        ("nll_loss2d_forward.default", "another operation"),
        ("allreduce_.default", COLLECTIVE.remedy),
        ("mm.default", UNKNOWN.remedy),
    ],
)
def test_what_is_known_of_an_operation_is_what_pytorch_says_of_it(name: str, remedy: str) -> None:
    assert remedy in of_operation(name).remedy
