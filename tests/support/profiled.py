"""Requests for tests of determinism variables.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

from reprobuild.request.model import Request

STRICT = Request(name="a", cuda="12.1")
