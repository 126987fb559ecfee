"""Suggest another Python for which a release has wheels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import requests
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ...errors import ResolveError
from ...request.model import PYTHONS
from ..index_page import File, files
from ..resolution import Resolution
from ..target import TargetPython
from .case import Advice, Case
from .newer_without_wheel import has_wheel

_OLDEST_GLIBC = (2, 31)
"""Of the Debian releases that have these Pythons."""


def advise(case: Case) -> Advice:
    """Name a Python version for which the release has wheels."""
    if case.refusal is None or not case.refusal.wrong_abi:
        return Advice()
    line = other_python(case.refusal.wrong_abi[0], case.requirements, case.resolution)
    return Advice() if line is None else Advice(lines=(line,))


def other_python(pin: str, others: Sequence[str], resolution: Resolution) -> str | None:
    """Return a line that suggests a Python for ``name==version``; None if no other has a wheel.

    Of several it is the one for which the most of ``others``, the rest of the requirements, have wheels.
    """
    target, session = resolution.target, resolution.session
    every = [pin, *(text for text in others if "==" in text and Requirement(text).url is None)]
    wanted = {str(canonicalize_name(each.name)): each for each in map(Requirement, every)}
    with ThreadPoolExecutor(8, "index-pages") as pool:
        pages = dict(zip(wanted, pool.map(lambda name: _page(name, session), wanted), strict=True))
    own = Requirement(pin)
    lacking = {
        python: _lacking(wanted, pages, TargetPython(python, target.architecture, _OLDEST_GLIBC))
        for python in PYTHONS
        if python != target.python
    }
    fits = [python for python in lacking if canonicalize_name(own.name) not in lacking[python]]
    if not fits:
        return None
    best = min(fits, key=lambda python: (len(lacking[python]), PYTHONS.index(python)))
    listed = ", ".join(sorted(fits, key=lambda python: int(python.partition(".")[2])))
    return f"{pin} has wheels for Python {listed}: give --python {best} (python in the request)"


def _lacking(
    wanted: Mapping[str, Requirement], pages: Mapping[str, Sequence[File]], target: TargetPython
) -> set[str]:
    return {name for name, each in wanted.items() if not has_wheel(pages[name], each, target)}


def _page(name: str, session: requests.Session) -> Sequence[File]:
    try:
        return files(name, session)
    except ResolveError:
        return ()
