"""The command ``selftest``: its modes, its comparisons, its exit statuses."""

from __future__ import annotations
