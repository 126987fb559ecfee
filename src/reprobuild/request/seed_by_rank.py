"""The key ``determinism.seed-by-rank`` of a request: whether each rank has a seed of its own. Pure."""

from __future__ import annotations

from .table import Table


def seed_by_rank(table: Table) -> bool:
    """Return the key's value. Raises `TableError` without a seed."""
    found: bool = table.flag("seed-by-rank")
    if found and not table.has("seed"):
        raise table.bad(
            "seed-by-rank",
            "needs a seed to make each rank's from",
            "set determinism.seed too",
        )
    return found
