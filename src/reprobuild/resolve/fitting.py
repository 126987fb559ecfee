"""uv's choice of wheels, corrected until it keeps the rules that no package names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import requests

from ..errors import ResolveError
from ..lock.model import Lock, PythonPackage
from ..request.model import Request, flavour
from .companions import broken_rules
from .held_back import held_back, sources_alone, without_wheels
from .target import TargetPython
from .torch import end_of
from .uv import resolve_python

_MOST_ATTEMPTS = 50
"""Of uv's; a package that names no rule itself takes one for each release that breaks it."""


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

    ``notes`` gets a line for each rule that had a say, and for what is not the newest for want of a wheel.
    Raises `ResolveError` as `resolve_python` does.
    """

    def resolved(*more: str) -> tuple[PythonPackage, ...]:
        return resolve_python(
            [*requirements, *more],
            target,
            provided=kept.provided,
            as_of=request.as_of,
            existing=kept.existing,
            upgrade=kept.upgrade,
            # uv's name of PyTorch's own index for the request's CUDA, where that is asked for.
            backend=None if request.index is None else flavour(request.cuda),
            session=session,
        )

    def attempt(more: str) -> ResolveError | None:
        try:
            resolved(*rules, more)
        except ResolveError as error:
            return error
        return None

    until = None if request.as_of is None else end_of(request.as_of)
    own = [text for text in requirements if text in request.packages]
    rules: dict[str, str] = {}
    for _ in range(_MOST_ATTEMPTS):
        try:
            found = resolved(*rules)
        except ResolveError as error:
            reasons = [f"{rule} is required: {reason}" for rule, reason in rules.items()]
            message = error.message
            if without_wheels(error) and (sources := sources_alone(own, target, until, session)):
                message = f"no wheel for this Python and machine of {', '.join(sources)}; {message}"
            raise ResolveError(message, hint="\n".join([*reasons, error.hint])) from None
        broken = broken_rules(found, request.packages, request.cuda, target, session)
        new = {rule.requirement: rule.reason for rule in broken if rule.requirement not in rules}
        if not new:
            break
        rules |= new
    else:
        rule, reason = list(rules.items())[-1]
        raise ResolveError(
            f"no packages that fit each other were found in {_MOST_ATTEMPTS} attempts; the last rule was "
            f"{rule}: {reason}",
            hint="name a version that fits in the request",
        )
    pins = {} if kept.existing is None else kept.existing.distributions
    fresh = [package for package in found if pins.get(package.name) != package.version]
    notes += [f"{rule}: {reason}" for rule, reason in rules.items()]
    notes += held_back(fresh, own, target, until=until, attempt=attempt, session=session)
    return found
