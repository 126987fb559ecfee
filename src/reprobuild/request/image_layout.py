"""Paths in an image: the packages, and reprobuild's own files."""

from __future__ import annotations

SITE_PREFIX = "/opt/venv"
OWN_FOLDER = "/opt/reprobuild"
