"""What a run can vary on purpose: what an image holds still, and other environments do not. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from . import known_causes
from .causes import Cause

_THREADS = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS"),
    *("NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS"),
)

VARIATIONS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "hashseed": ("the hash seed", {"PYTHONHASHSEED": "1"}),
    "listing": ("the order of folders' entries", {"REPROBUILD_TWICE_VARY": "listing"}),
    "threads": ("the number of threads", dict.fromkeys(_THREADS, "3")),
    "locale": (
        "the locale, the encoding and the time zone",
        {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TZ": "XST-5:30"},
    ),
}
"""A name → what it is, and the variables of the run."""
_FITTING = {"hashseed": ("the order of a set", "hash", "id"), "listing": ("os.listdir", "os.scandir")}
"""What of a program each variation changes, by the names of candidates."""


def of_variation(cause: Cause, varied: str) -> Cause:
    """Return the cause of a parting that a variation made: what it changes, or else candidates only."""
    fitting = tuple(each for each in cause.candidates if each.name in _FITTING.get(varied, ()))
    rest = tuple(each for each in cause.candidates if each not in fitting)
    proven = bool(fitting) or (cause.kind == "operation" and not rest)
    remedy = known_causes.SET if varied == "hashseed" else known_causes.SOURCES["listing"]
    return replace(
        cause, candidates=(*fitting, *rest), proven=proven, remedy=remedy if fitting else cause.remedy
    )
