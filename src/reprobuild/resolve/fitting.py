"""uv's choice of wheels, corrected until it keeps the rules that no package names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import requests
from packaging.requirements import Requirement

from ..errors import ResolveError
from ..lock.model import Lock, PythonPackage
from ..request.model import Request, flavour
from .companions import broken_rules
from .held_back import held_back, sources_alone, told, without_wheels
from .nearest import nearest
from .sources import SourcePackages, is_source
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
    sources: SourcePackages | None = None,
) -> tuple[PythonPackage, ...]:
    """Return uv's packages for requirements of a request, such that they keep the rules of `companions`.

    What has no wheel is built by ``sources``; without it only wheels count. ``notes`` gets a line for each
    rule that had a say, and for what is not the newest for want of a wheel. Raises `ResolveError` as
    `resolve_python` does, `BuildError` where what has to be built cannot be.
    """

    def resolved(*more: str, of: Sequence[str] | None = None) -> tuple[PythonPackage, ...]:
        return resolve_python(
            [*(requirements if of is None else of), *more],
            target,
            provided=kept.provided,
            as_of=request.as_of,
            existing=kept.existing,
            upgrade=kept.upgrade,
            # uv's name of PyTorch's own index for the request's CUDA, where that is asked for.
            backend=None if request.index is None else flavour(request.cuda),
            standins=None if sources is None else sources.standins(),
            session=session,
        )

    def tried(*more: str, of: Sequence[str] | None = None) -> tuple[PythonPackage, ...] | ResolveError:
        try:
            return resolved(*rules, *more, of=of)
        except ResolveError as error:
            return error

    def attempt(more: str) -> ResolveError | None:
        found = tried(more)
        return found if isinstance(found, ResolveError) else None

    until = None if request.as_of is None else end_of(request.as_of)
    own = [text for text in requirements if text in request.packages]
    pins = {} if kept.existing is None else kept.existing.distributions
    rules: dict[str, str] = {}
    requirements = _placed(requirements, lambda some: tried(of=some), sources, notes)
    while True:
        found = tried()
        if isinstance(found, ResolveError):
            # All at once, though uv names the first that it comes upon.
            names = without_wheels(found)
            alone = sources_alone(own, target, until, session) if names else []
            if sources is None or not sources.offer([*names, *alone]):
                near = nearest(found, requirements, own, lambda some: tried(of=some))
                raise _refused(found, rules, alone, near) from None
            continue
        settled = found if sources is None else sources.settled(found)
        if settled is None:
            continue
        found = settled
        broken = broken_rules(found, request.packages, request.cuda, target, session)
        new = {rule.requirement: rule.reason for rule in broken if rule.requirement not in rules}
        _add(new, rules)
        if new:
            continue
        fresh = [package for package in found if pins.get(package.name) != package.version]
        held = held_back(fresh, own, target, until=until, attempt=attempt, session=session)
        lacking = [name for each in held for name in each.lacking]
        if sources is None or not sources.offer(lacking, optional=True):
            break
    notes += [f"{rule}: {reason}" for rule, reason in rules.items()]
    failures = [] if sources is None else sources.failures(lacking)
    try:
        notes += told(held, target)
    except ResolveError as error:
        raise ResolveError(error.message, hint="\n".join([*failures, error.hint])) from None
    notes += failures
    return found


def _placed(
    requirements: Sequence[str],
    tried: Callable[[Sequence[str]], Sequence[PythonPackage] | ResolveError],
    sources: SourcePackages | None,
    notes: list[str],
) -> Sequence[str]:
    """Return requirements with what is built of those that have the address of a source."""
    named = [text for text in requirements if is_source(text)]
    if not named:
        return requirements
    if sources is None:
        raise ResolveError(
            f"{Requirement(named[0]).name}: its address is that of a source, and only wheels are taken",
            hint="only-wheels, conda's Python and another kind of machine want wheels alone; name "
            "a wheel in its place",
        )
    # torch is chosen before: a build may ask for it.
    first = tried([text for text in requirements if text not in named])
    return sources.placed(requirements, () if isinstance(first, ResolveError) else first, notes)


def _refused(
    error: ResolveError, rules: Mapping[str, str], alone: Sequence[str], near: Sequence[str]
) -> ResolveError:
    """Return uv's refusal with what is known beside it."""
    reasons = [f"{rule} is required: {reason}" for rule, reason in rules.items()]
    message = error.message
    if alone:
        message = f"no wheel for this Python and machine of {', '.join(alone)}; {message}"
    return ResolveError(message, hint="\n".join([*reasons, *near, error.hint]))


def _add(new: Mapping[str, str], rules: dict[str, str]) -> None:
    """Add rules with their reasons. Raises `ResolveError` where there is no end of them."""
    rules |= new
    if len(rules) >= _MOST_ATTEMPTS:
        rule, reason = list(rules.items())[-1]
        raise ResolveError(
            f"no packages that fit each other were found in {_MOST_ATTEMPTS} attempts; the last rule was "
            f"{rule}: {reason}",
            hint="name a version that fits in the request",
        )
