"""This machine, as the steps of one call see it."""

from __future__ import annotations

from dataclasses import dataclass

from .console import Console
from .home import Home


@dataclass(frozen=True, slots=True)
class Host:
    """Where reprobuild keeps things and how it talks; the command line makes one for each call."""

    home: Home
    console: Console
