"""torch and NumPy, imported at their first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any


class _Lazy:
    """A module that is imported at its first use, so that the parent, --list and --help never pay for it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)


__all__ = ["np", "torch"]
if TYPE_CHECKING:
    import numpy as np
    import torch
else:
    np, torch = _Lazy("numpy"), _Lazy("torch")
