"""uv's choice of wheels, corrected until it keeps the rules that no package names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import requests

from ..errors import ResolveError
from ..lock.model import Lock, PythonPackage
from ..request.model import Request, flavour
from .companions import broken_rules
from .target import TargetPython
from .uv import resolve_python


@dataclass(frozen=True, slots=True)
class Kept:
    """What is chosen already: conda's packages, and the pins of an earlier lock."""

    provided: Mapping[str, str]
    """What conda brings: name → version."""
    existing: Lock | None
    upgrade: frozenset[str] | None
    """The packages whose versions in ``existing`` need not stay; None: all."""


def fitting(
    requirements: Sequence[str],
    request: Request,
    target: TargetPython,
    kept: Kept,
    *,
    notes: list[str],
    session: requests.Session,
) -> tuple[PythonPackage, ...]:
    """Return uv's packages for requirements of a request, such that they keep the rules of `companions`.

    ``notes`` gets a line for each rule that had a say. Raises `ResolveError` as `resolve_python` does.
    """
    rules: dict[str, str] = {}
    while True:
        try:
            found = resolve_python(
                [*requirements, *rules],
                target,
                provided=kept.provided,
                as_of=request.as_of,
                existing=kept.existing,
                upgrade=kept.upgrade,
                # uv's name of PyTorch's own index for the request's CUDA, where that is asked for.
                backend=None if request.index is None else flavour(request.cuda),
                session=session,
            )
        except ResolveError as error:
            reasons = [f"{rule} is required: {reason}" for rule, reason in rules.items()]
            raise ResolveError(error.message, hint="\n".join([*reasons, error.hint])) from None
        broken = broken_rules(found, request.packages, request.cuda, target, session)
        new = {rule.requirement: rule.reason for rule in broken if rule.requirement not in rules}
        if not new:
            notes += [f"{rule}: {reason}" for rule, reason in rules.items()]
            return found
        rules |= new
