"""The glossary names classes that are there, and no class's name is another's."""

from __future__ import annotations

import ast
import importlib
import re
from collections import Counter
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]
NAMED = sorted(set(re.findall(r"`((?:\w+\.)+[A-Z]\w+)`", (TOP / "docs" / "glossary.md").read_text())))

SHARED = {"Member"}
"""A file of an image archive, and a file of a wheel: each is a member of its archive."""


@pytest.mark.parametrize("name", NAMED)
def test_a_class_that_the_glossary_names_is_there(name: str) -> None:
    module, _, found = name.rpartition(".")
    assert hasattr(importlib.import_module(f"reprobuild.{module}"), found)


def test_no_two_public_classes_have_one_name() -> None:
    package = TOP / "src" / "reprobuild"
    names = Counter(
        node.name
        for path in package.rglob("*.py")
        if "in_image" not in path.parts
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, times in names.items() if times > 1} <= SHARED
