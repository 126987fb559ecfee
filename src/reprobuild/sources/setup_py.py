"""Build requirements of a setup.py, read as text, without running it. Pure."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from dataclasses import dataclass

_EXTENSION = re.compile(rb"\bExtension\s*\(|\b(?:Cpp|CUDA)Extension\b|\bcythonize\b")
_CUDA = re.compile(rb"\bCUDAExtension\b|\bnvcc\b")


@dataclass(frozen=True, kw_only=True, slots=True)
class Script:
    """A setup.py."""

    imports: tuple[str, ...] = ()
    """The modules that it imports whatever happens, without Python's own; sorted."""
    compiles: bool = False
    """Whether it seems to compile extensions."""
    cuda: bool = False
    """Whether it seems to compile CUDA code."""


def read_script(text: bytes | None) -> Script:
    """Return what a setup.py needs; nothing if it is missing or not valid Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text or b"")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Script()
    found: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom) and not statement.level and statement.module:
            found.add(statement.module.partition(".")[0])
    found -= {*sys.stdlib_module_names, "distutils"}
    compiles = _EXTENSION.search(text or b"") is not None
    cuda = _CUDA.search(text or b"") is not None
    return Script(imports=tuple(sorted(found)), compiles=compiles, cuda=cuda)
