"""uv's choice of wheels, corrected until it keeps the rules that no package names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import requests
from packaging.requirements import Requirement

from ..errors import ResolveError
from ..host.machine import architecture
from ..lock.model import Lock, PythonPackage
from ..request.dates import end_of
from ..request.model import Request, flavour
from .abi_rules import broken_rules
from .advice.alternative_python import other_python
from .advice.alternative_torch import other_torch
from .advice.relax_pins import nearest
from .newer_without_wheel import held_back, sources_alone, told, without_wheels
from .sdist_builds import SourcePackages, is_source
from .target import TargetPython
from .torch import TorchScan
from .uv_command import ALWAYS, resolve_python
from .uv_refusal import CORRECT, Kind, RefusedError, UnreachableError, UnreadError

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
    hashes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Package → the SHA-256 of the wheels that an imported file names."""


def fitting(
    requirements: Sequence[str],
    request: Request,
    target: TargetPython,
    kept: Kept,
    *,
    notes: list[str],
    session: requests.Session,
    sources: SourcePackages | None = None,
    scan: TorchScan | None = None,
) -> tuple[PythonPackage, ...]:
    """Return uv's packages for requirements of a request, such that they keep the rules of `abi_rules`.

    What has no wheel is built by ``sources``; without it only wheels count. With a ``scan``, the torch that
    the requirements pin may give way to an older one for its CUDA. ``notes`` gets a line for each rule that
    had a say, and for what is not the newest for want of a wheel. Raises `ResolveError` as `resolve_python`
    does, `BuildError` where what has to be built cannot be.
    """
    return _Fitting(requirements, request, target, kept, session, sources, scan).found(notes)


class _Fitting:
    """One search for packages that fit: what uv is asked, and what was learnt from its answers."""

    def __init__(  # noqa: PLR0917 -- those of `fitting`
        self,
        requirements: Sequence[str],
        request: Request,
        target: TargetPython,
        kept: Kept,
        session: requests.Session,
        sources: SourcePackages | None,
        scan: TorchScan | None,
    ) -> None:
        self._requirements, self._request, self._target = requirements, request, target
        self._kept, self._session, self._sources, self._scan = kept, session, sources, scan
        self._own = [text for text in requirements if text in request.packages]
        self._until = None if request.as_of is None else end_of(request.as_of)
        self._rules: dict[str, str] = {}
        self._other_torch = ""
        self._untold: dict[str, str] = {}
        """Newer releases of which uv does not say whether they fit, and what it says in place of that."""

    def found(self, notes: list[str]) -> tuple[PythonPackage, ...]:
        """Return what fits."""
        self._place(notes)
        pins = {} if self._kept.existing is None else self._kept.existing.distributions
        while True:
            found = self._tried()
            if isinstance(found, ResolveError):
                self._give_way(found)
                continue
            settled = found if self._sources is None else self._sources.settled(found)
            if settled is None:
                continue
            found = settled
            request = self._request
            broken = broken_rules(found, request.packages, request.cuda, self._target, self._session)
            new = {rule.requirement: rule.reason for rule in broken if rule.requirement not in self._rules}
            _add(new, self._rules)
            if new:
                continue
            fresh = [package for package in found if pins.get(package.name) != package.version]
            held = held_back(
                fresh, self._own, self._target, until=self._until, attempt=self._lacks, session=self._session
            )
            lacking = [name for each in held for name in each.lacking]
            if self._sources is None or not self._sources.offer(lacking, optional=True):
                break
        notes += [self._other_torch] if self._other_torch else []
        notes += [f"{rule}: {reason}" for rule, reason in self._rules.items()]
        notes += [f"whether {pin} fits is not known: {said}" for pin, said in self._untold.items()]
        failures = [] if self._sources is None else self._sources.failures(lacking)
        try:
            notes += told(held, self._target)
        except ResolveError as error:
            raise ResolveError(error.message, hint="\n".join([*failures, error.hint])) from None
        notes += failures
        return found

    def _place(self, notes: list[str]) -> None:
        """Put what is built of those that have the address of a source into their place."""
        named = [text for text in self._requirements if is_source(text)]
        if not named:
            return
        if self._sources is None:
            why, cure = only_wheels(self._request, self._target)
            names = ", ".join(Requirement(text).name for text in named)
            raise ResolveError(
                f"{names}: the address is that of a source, and {why or 'only wheels are taken'}",
                hint=f"name the address of a wheel in its place, or {cure or 'a package of an index'}",
            )
        # torch is chosen before: a build may ask for it.
        first = self._tried(of=[text for text in self._requirements if text not in named])
        known = () if isinstance(first, ResolveError) else first
        self._requirements = self._sources.placed(self._requirements, known, notes)

    def _tried(self, *more: str, of: Sequence[str] | None = None) -> tuple[PythonPackage, ...] | ResolveError:
        request, kept = self._request, self._kept
        try:
            return resolve_python(
                [*(self._requirements if of is None else of), *self._rules, *more],
                self._target,
                provided=kept.provided,
                as_of=request.as_of,
                existing=kept.existing,
                upgrade=kept.upgrade,
                hashes=kept.hashes,
                rules_of=request,
                # uv's name of PyTorch's own index for the request's CUDA, where that is asked for.
                backend=None if request.index is None else flavour(request.cuda),
                standins=None if self._sources is None else self._sources.standins(),
                session=self._session,
            )
        except (UnreachableError, UnreadError):
            raise  # neither says what would fit
        except ResolveError as error:
            return error

    def _offered(self, some: Sequence[str]) -> Sequence[PythonPackage] | ResolveError:
        """Resolve requirements, with what has no wheel among what uv may choose from."""
        while True:
            found = self._tried(of=some)
            lacking = without_wheels(found) if isinstance(found, ResolveError) else []
            if self._sources is None or not lacking or not self._sources.offer(lacking):
                return found

    def _lacks(self, more: str) -> ResolveError | None:
        try:
            found = self._tried(more)
        except (UnreachableError, UnreadError) as error:
            self._untold[more] = error.message.partition("\n")[0]
            return None
        return found if isinstance(found, ResolveError) else None

    def _give_way(self, error: ResolveError) -> None:
        """Let uv have more to choose from. Raises its refusal, with what is known beside it, otherwise."""
        names = without_wheels(error)
        # All at once, though uv names the first that it comes upon.
        alone = sources_alone(self._own, self._target, self._until, self._session) if names else []
        if self._sources is not None and self._sources.offer([*names, *alone]):
            return
        hints = [f"{rule} is required: {reason}" for rule, reason in self._rules.items()]
        cuda: str | None = None
        if self._scan is not None and not self._other_torch:
            other = other_torch(
                error,
                self._requirements,
                self._request,
                self._target,
                scan=self._scan,
                attempt=self._offered,
            )
            if other is not None and other.requirements is not None:
                self._requirements, self._other_torch = other.requirements, other.said
                return
            hints += [] if other is None else [other.said]
            cuda = None if other is None else other.cuda
        message = error.message
        if alone:
            why, cure = only_wheels(self._request, self._target)
            hints += [f"to build them: {cure}"] if why else []
            message = "; ".join(
                filter(None, (f"no wheel for this Python and machine of {', '.join(alone)}", why, message))
            )
        if isinstance(error, RefusedError) and error.refusal.wrong_abi:
            pin = error.refusal.wrong_abi[0]
            python = other_python(pin, self._requirements, self._target, self._session)
            hints += [] if python is None else [python]
        near = nearest(error, self._requirements, self._own, lambda some: self._tried(of=some))
        contradicts = isinstance(error, RefusedError) and error.refusal.kind is Kind.CONTRADICTION
        if not hints and contradicts and not self._fits_without_ours():
            hints.append(
                "what is asked for contradicts itself, with any PyTorch: correct it where it is written"
            )
        advice = [*hints, *near]
        raise ResolveError(
            message,
            hint="\n".join(advice if advice and error.hint == CORRECT else [*advice, error.hint]),
            cuda=cuda,
        ) from None

    def _fits_without_ours(self) -> bool:
        """Whether the user's requirements fit one another, without the torch and NumPy beside them."""
        ours = {*self._rules, *ALWAYS, *(t for t in self._requirements if Requirement(t).name == "torch")}
        return not isinstance(
            self._tried(of=[text for text in self._requirements if text not in ours]), ResolveError
        )


def only_wheels(request: Request, target: TargetPython) -> tuple[str, str]:
    """Return why no source package is built for a request, and what would change that.

    Why is empty where one would be.
    """
    if request.only_wheels:
        return "the request takes wheels alone", "take only-wheels (--only-wheels) out of the request"
    if request.conda is not None:
        return "nothing is built beside conda's Python", "take conda out of the request"
    if target.architecture != architecture():
        return (
            f"nothing is built for {target.platform} on this machine",
            f"lock on a machine of that kind, or take {target.platform} out of the request",
        )
    return "", ""


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
