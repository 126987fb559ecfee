"""The words of messages, and of what each module says that it is: the field's, and not a private language's.

What a machine can tell of it; `CONTRIBUTING.md` has the rule.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import reprobuild

PACKAGE = Path(reprobuild.__file__).parent
# What runs in an image is a part of its digest, and is left as it is.
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "in_image" not in path.parts)

PRIVATE = re.compile(
    r"\b(?:(?<!there )(?:is|are|be|was|were) none(?! of)|(?:hold|holds|held) against"
    r"|com(?:e|es|ing) to (?:its|an) end"
    r"|giv(?:e|es) back|be(?:ing)? borne|be(?:ing)? had|has not the form|an honest)\b"
    r"|\b(?:is|are|was) no (?:number|text|list|digest|file|folder|image|zip|wheel|address|recording)\b"
    r"|\b(?:is|are|was|were|be|being) told\b|\b[Bb]rings? (?:its|their|CUDA|torch|a |the )"
)
"""Say instead: is not a valid Y, verify against, finish, return, found, does not have the form, contains."""

WORDS = 25
"""The most in a sentence of a docstring's first line."""


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """Messages, and what a module says that it is, with their line."""
    tree = ast.parse(path.read_text())
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    yield 1, (ast.get_docstring(tree) or "").partition("\n")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value if " " in node.value else ""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_words_are_those_of_the_field(path: Path) -> None:
    assert [(line, text[:120]) for line, text in strings(path) if PRIVATE.search(text)] == []


def test_docstrings_say_it_in_the_field_s_words_too() -> None:
    private = []
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                first = str(node.value.value).strip().partition("\n\n")[0]
                private += [(path.name, node.lineno, found[0]) for found in PRIVATE.finditer(first)]
    assert not private


def test_sentences_of_first_lines_are_short() -> None:
    long = []
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                first = (ast.get_docstring(node) or "").partition("\n")[0]
                long += [
                    f"{path.relative_to(PACKAGE)}: {sentence}"
                    for sentence in re.split(r"(?<=[.:;]) ", first)
                    if len(sentence.split()) > WORDS
                ]
    assert not long


def test_a_private_word_is_seen() -> None:
    for text in ("a text is none", "it is no number", "bytes held against their hash", "did come to its end"):
        assert PRIVATE.search(text)
    for text in ("is none of them", "is not a number", "verified against their hash", "it has no number"):
        assert not PRIVATE.search(text)
