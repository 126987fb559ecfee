"""The key ``determinism.seed-by-rank`` of a request: whether each rank has a seed of its own. Pure."""

from __future__ import annotations

from ..errors import RequestError
from .toml_reader import Table


def seed_by_rank(table: Table) -> bool:
    """Return the key's value. Raises `RequestError` where there is no seed."""
    found: bool = table.value("seed-by-rank", bool, False)  # noqa: FBT003 -- as the other keys
    if found and not table.has("seed"):
        raise RequestError(
            f"{table.where('seed-by-rank')}: needs a seed to make each rank's from",
            hint="set determinism.seed too",
        )
    return found
