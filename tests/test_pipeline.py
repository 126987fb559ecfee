"""The order of the steps: an image gets its name last, and only when it has passed."""

from __future__ import annotations
