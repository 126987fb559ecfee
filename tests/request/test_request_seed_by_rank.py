"""The seed of a request."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reprobuild.errors import RequestError
from reprobuild.request.model import Request
from reprobuild.request.profiles import variables
from support.profiled import STRICT


def test_a_seed_is_set_also_when_it_is_zero() -> None:
    assert "REPROBUILD_SEED" not in variables(STRICT)
    assert variables(replace(STRICT, seed=0))["REPROBUILD_SEED"] == "0"


def test_a_seed_by_rank_needs_a_seed() -> None:
    def asked(**determinism: object) -> Request:
        return Request.from_dict({"name": "a", "cuda": "12.1", "determinism": determinism}, "a.toml")

    found = asked(**{"seed": 7, "seed-by-rank": True})
    assert variables(found)["REPROBUILD_SEED_BY_RANK"] == "1"
    assert Request.from_dict(found.to_dict(), "a.toml") == found
    with pytest.raises(RequestError, match=r"determinism\.seed-by-rank: needs a seed"):
        asked(**{"seed-by-rank": True})
