"""The files of ``programs/``, which process.py or a sandbox runs by themselves."""

from __future__ import annotations

from pathlib import Path


def own_program(name: str) -> Path:
    """Return the file of a program of ``programs/``."""
    return Path(__file__).parents[1] / "programs" / name
