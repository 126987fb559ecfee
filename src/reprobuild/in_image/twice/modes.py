"""Dropout that draws where nothing is trained, so that each answer is another one.

Mostly the model is in training mode; or the dropout does not follow the model's mode.
"""

from __future__ import annotations

import functools
import sys
import weakref
from types import FrameType
from typing import Any

from .places import is_users, of_frame, text
from .sources import NOBODY

DROPS = "dropout that draws where nothing is trained"
STAYS = "dropout that draws also where the model is in evaluation mode"
_DRAWS = (
    *("dropout", "dropout_", "native_dropout", "_fused_dropout", "feature_dropout", "alpha_dropout"),
    *("feature_alpha_dropout", "bernoulli_"),
)
"""Operations by which dropout draws."""


class Modes:
    """Where models got their mode, and the dropout that was told."""

    def __init__(self) -> None:
        self._at: weakref.WeakKeyDictionary[Any, tuple[str, int, str]] = weakref.WeakKeyDictionary()
        self._told: set[tuple[str, int, str]] = set()

    def watch(self, kind: Any) -> None:
        """Note the lines of the program that load a model's weights or choose its mode."""
        for name in ("load_state_dict", "train"):
            setattr(kind, name, self._noted(getattr(kind, name)))

    def _noted(self, inner: Any) -> Any:
        @functools.wraps(inner)
        def wrapper(module: Any, *given: Any, **named: Any) -> Any:
            place = _called_at()
            if place[0]:
                self._at[module] = place
            return inner(module, *given, **named)

        return wrapper

    def hint(self, operation: str, modules: list[Any], place: tuple[str, int, str]) -> dict[str, Any] | None:
        """Return the record of a line at which dropout draws; None: it does not, or was told.

        ``modules``: those that are being called, the innermost last, while no gradients are computed.
        """
        if operation not in _DRAWS or not modules or place in self._told:
            return None
        told = text(place)
        if "drop" not in f"{operation} {type(modules[-1]).__name__} {told}".lower():
            return None  # a draw that is meant
        if _is_computed_again():
            return None
        self._told.add(place)
        what = DROPS if modules[0].training else STAYS
        by = self._at.get(modules[0], NOBODY) if what is DROPS else NOBODY
        return {"k": "hint", "what": what, "place": [*place, told], "for": [*by, text(by)]}


def _called_at() -> tuple[str, int, str]:
    """Return the line of the program that calls what called this; empty: a library does."""
    frame = sys._getframe(2)
    return of_frame(frame) if is_users(frame.f_code.co_filename) else NOBODY


def _is_computed_again() -> bool:
    """Return whether this is training, of which a checkpoint computes the gradients later.

    https://docs.pytorch.org/docs/stable/checkpoint.html
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") != "torch.utils.checkpoint":
        frame = frame.f_back
    return frame is not None
