"""A torch years newer than all that the request pins."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from reprobuild.lock.age_gap import age_gap
from reprobuild.lock.model import Lock
from reprobuild.lock.packages import PythonPackage, Wheel
from support.resolving import request


def lock(year: int, pins: int, **keys: str) -> Lock:
    def package(name: str, year: int) -> PythonPackage:
        uploaded = datetime(year, 5, 1, tzinfo=UTC)
        file = Wheel(filename=f"{name}-1-py3-none-any.whl", url="", sha256="", size=1, uploaded=uploaded)
        return PythonPackage(name=name, version="1", wheel=file)

    names = [f"p{number}" for number in range(pins)]
    return Lock(
        request=request(packages=[f"{name}==1" for name in names], **keys),
        platform="linux/amd64",
        epoch=0,
        python=(package("torch", year), *(package(name, 2021) for name in names)),
        debian=(),
        variables={},
    )


@pytest.mark.parametrize(
    ("made", "is_told"),
    [
        (lock(2025, 3), True),
        (lock(2022, 3), False),
        (lock(2025, 2), False),
        (lock(2025, 3, torch="1"), False),
    ],
)
def test_it_is_told_where_three_pins_are_two_years_older(made: Lock, is_told: bool) -> None:
    said = age_gap(made)
    assert bool(said) is is_told
    if said:
        assert said.startswith("torch 1 is from 2025-05, and the newest of the 3 pinned")
