"""What a run can vary on purpose: what an image holds still, and other environments do not. Pure."""

from __future__ import annotations

from collections.abc import Mapping

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
