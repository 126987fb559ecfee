"""Where requests are, and which files they may name."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path("envs")

OUTSIDE = "REPROBUILD_OUTSIDE_FILES"
"""A variable: set to 1, requests may name files outside their own folder."""
