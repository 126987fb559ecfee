"""The requests that ship with reprobuild, which ``--cuda X.Y`` selects in any folder. Pure.

They are the files of ``envs/`` in reprobuild's own repository.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .. import assets
from .model import Request, default_name


def shipped_table(cuda: str, python: str) -> Mapping[str, Any]:
    """Return the request that ships for a CUDA and a Python, in the file's form; empty where none does."""
    name = default_name(cuda, python)
    text = assets.request(name)
    return {} if text is None else Request.load(text, f"{name}.toml")


def is_usual(request: Request) -> bool:
    """Whether a request equals the one that ``--cuda`` and ``--python`` select, but for torch's version.

    An image of any other request must not take the usual name.
    """
    table = {"cuda": request.cuda, "python": request.python, **shipped_table(request.cuda, request.python)}
    free: dict[str, Any] = {"torch": None, "index": None, "platforms": ()}
    return replace(request, **free) == replace(Request.from_dict(table, "the shipped request"), **free)
