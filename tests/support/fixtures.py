"""Fixtures for the modules that ask for them, and for no other test of the session."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from _pytest.fixtures import getfixturemarker


def fixtures_of(*modules: str) -> dict[str, Any]:
    """Return the fixtures of some modules, by name: ``globals().update(fixtures_of("support.teams"))``.

    ``pytest_plugins`` would give them to every test that runs after: of two named ``team`` the last counts,
    and an automatic one changes tests that never heard of it. It is for what a session shares.
    """
    return {
        name: value
        for module in modules
        for name, value in vars(import_module(module)).items()
        if getfixturemarker(value) is not None
    }
