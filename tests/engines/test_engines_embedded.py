"""The embedded engine on a small image whose programs really run."""

from __future__ import annotations
