"""Repeat uv's resolution with added constraints until it satisfies the ABI rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from packaging.requirements import Requirement

from ..errors import ResolveError
from ..host.machine import architecture
from ..lock.packages import PythonPackage
from ..request.model import Request
from .abi_rules import broken_rules, refuse_gpu_builds
from .advice import alternative_python, alternative_torch, relax_pins, typo_hints
from .advice.case import Advice, Attempt, Case
from .advice.newer_without_wheel import held_back, sources_alone, told, without_wheels
from .resolution import Resolution
from .sdist_builds import SourcePackages, is_source
from .target import TargetPython
from .torch import TorchScan
from .uv_command import ALWAYS, resolve_python
from .uv_refusal import CORRECT, Kind, RefusedError, UnreachableError, UnreadError

_MOST_ATTEMPTS = 50
"""Of uv's; a package that names no rule itself takes one for each release that breaks it."""


_ADVICE = (alternative_python.advise, relax_pins.advise, typo_hints.advise)


def fitting(
    requirements: Sequence[str],
    resolution: Resolution,
    *,
    sources: SourcePackages | None = None,
    scan: TorchScan | None = None,
) -> tuple[PythonPackage, ...] | None:
    """Return uv's packages for requirements of a request, such that they keep the rules of `abi_rules`.

    None where something has to be built, and the image will have another C library than the target. What has
    no wheel is built by ``sources``; without it only wheels count. With a ``scan``, the torch that the
    requirements pin may give way to an older one for its CUDA. The notes of the resolution get a line for
    each rule that had a say, and for what is not the newest for want of a wheel. Raises `ResolveError` as
    `resolve_python` does, `BuildError` where what has to be built cannot be.
    """
    return _Fitting(requirements, resolution, sources, scan).found()


class _Fitting:
    """One search for compatible packages: the input of uv, and the constraints learnt from its answers."""

    def __init__(
        self,
        requirements: Sequence[str],
        resolution: Resolution,
        sources: SourcePackages | None,
        scan: TorchScan | None,
    ) -> None:
        self._requirements, self._resolution = requirements, resolution
        self._sources, self._scan = sources, scan
        self._request, self._target = resolution.request, resolution.target
        self._own = [text for text in requirements if text in resolution.request.packages]
        self._rules: dict[str, str] = {}
        self._other_torch = ""
        self._untold: dict[str, str] = {}
        """Newer releases that uv does not judge, with the reason that it gives."""

    def found(self) -> tuple[PythonPackage, ...] | None:
        """Return what fits; None where it would be built for another C library than the image's."""
        notes, existing = self._resolution.notes, self._resolution.existing
        named = [text for text in self._requirements if is_source(text)]
        if named and self._sources is not None and not self._sources.fits_image():
            return None
        if named:
            self._place(named)
        unused = [] if self._sources is None else self._sources.unused
        pins = {} if existing is None else existing.distributions
        while True:
            found = self._tried()
            if isinstance(found, ResolveError):
                try:
                    self._give_way(found)
                except ResolveError as error:  # of a package, perhaps, that is in no index
                    error.hint = "\n".join(filter(None, [*unused, error.hint]))
                    raise
                continue
            if self._sources is not None and self._sources.stands_for(found):
                if not self._sources.fits_image():
                    return None
                settled = self._sources.settled(found)
                if settled is None:
                    continue
                found = settled
            request = self._request
            broken = broken_rules(
                found, request.packages, request.cuda, self._target, self._resolution.session
            )
            new = {rule.requirement: rule.reason for rule in broken if rule.requirement not in self._rules}
            _add(new, self._rules)
            if new:
                continue
            fresh = [package for package in found if pins.get(package.name) != package.version]
            held = held_back(fresh, self._own, self._resolution, self._lacks)
            lacking = [name for each in held for name in each.lacking]
            if self._sources is None or not self._sources.offer(lacking, optional=True):
                break
        notes += unused
        notes += [self._other_torch] if self._other_torch else []
        notes += [f"{rule}: {reason}" for rule, reason in self._rules.items()]
        notes += [f"whether {pin} fits is not known: {said}" for pin, said in self._untold.items()]
        failures = [] if self._sources is None else self._sources.failures(lacking)
        try:
            notes += told(held, self._target)
        except ResolveError as error:
            raise ResolveError(error.message, hint="\n".join([*failures, error.hint])) from None
        notes += failures
        refuse_gpu_builds(found, request.cuda, self._resolution.session)
        return found

    def _place(self, named: Sequence[str]) -> None:
        """Replace the packages with the address of a source by those built from it."""
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
        self._requirements = self._sources.placed(self._requirements, known)

    def _tried(self, *more: str, of: Sequence[str] | None = None) -> tuple[PythonPackage, ...] | ResolveError:
        wanted = [*(self._requirements if of is None else of), *more]
        # A bound on a package is not a wish for it: it may be one of a release that gives way later.
        bounds = [rule for rule in self._rules if Requirement(rule).specifier]
        wanted += [rule for rule in self._rules if rule not in bounds]
        request = replace(self._request, constraints=(*self._request.constraints, *bounds))
        resolution = replace(self._resolution, request=request)
        standins = None if self._sources is None else self._sources.standins()
        try:
            return resolve_python(wanted, resolution, standins=standins)
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
        """Offer uv more candidates. Raises its refusal, with what else is known, if there are none."""
        names = without_wheels(error)
        # All at once, though uv names the first that it comes upon.
        alone = sources_alone(self._own, self._resolution) if names else []
        if self._sources is not None and self._sources.offer([*names, *alone]):
            return
        hints = [f"{rule} is required: {reason}" for rule, reason in self._rules.items()]
        cuda: str | None = None
        if not self._other_torch:
            other = self._advice(alternative_torch.advise, error, self._offered)
            if other.requirements is not None:
                self._requirements, (self._other_torch,) = other.requirements, other.lines
                return
            hints += other.lines
            cuda = other.cuda
        message = error.message
        if alone:
            why, cure = only_wheels(self._request, self._target)
            hints += [f"to build them: {cure}"] if why else []
            message = "; ".join(
                filter(None, (f"no wheel for this Python and machine of {', '.join(alone)}", why, message))
            )
        # The Python first: with it nothing else may have to go.
        advice = [self._advice(advise, error, lambda some: self._tried(of=some)).lines for advise in _ADVICE]
        hints += advice[0]
        if not hints and _is_contradiction(error) and self._contradicts_without_ours():
            hints.append(
                "what is asked for contradicts itself, with any PyTorch: correct it where it is written"
            )
        hints += [line for lines in advice[1:] for line in lines]
        raise ResolveError(
            message,
            hint="\n".join(hints if hints and error.hint == CORRECT else [*hints, error.hint]),
            cuda=cuda,
        ) from None

    def _advice(self, advise: Callable[[Case], Advice], error: ResolveError, attempt: Attempt) -> Advice:
        """Return advice on a refusal; without known alternatives, uv's own message."""
        case = Case(
            error=error,
            requirements=self._requirements,
            resolution=self._resolution,
            attempt=attempt,
            scan=self._scan,
        )
        try:
            return advise(case)
        except (UnreachableError, UnreadError) as unread:
            first = unread.message.partition("\n")[0]
            return Advice(lines=(f"what would fit in its place is not known: {first}",))

    def _contradicts_without_ours(self) -> bool:
        """Whether the user's requirements contradict each other without the torch and NumPy beside them."""
        ours = {*self._rules, *ALWAYS, *(t for t in self._requirements if Requirement(t).name == "torch")}
        try:
            found = self._tried(of=[text for text in self._requirements if text not in ours])
        except (UnreachableError, UnreadError):
            return False  # so that nothing is said of it
        return isinstance(found, ResolveError) and _is_contradiction(found)


def _is_contradiction(error: ResolveError) -> bool:
    """Whether uv has refused requirements for each other's sake; of a version that is not there it is not."""
    if not isinstance(error, RefusedError) or error.refusal.kind is not Kind.CONTRADICTION:
        return False
    return not error.refusal.lacks_version


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
    """Add rules with their reasons. Raises `ResolveError` if there are too many."""
    rules |= new
    if len(rules) >= _MOST_ATTEMPTS:
        rule, reason = list(rules.items())[-1]
        raise ResolveError(
            f"no packages that fit each other were found in {_MOST_ATTEMPTS} attempts; the last rule was "
            f"{rule}: {reason}",
            hint="name a version that fits in the request",
        )
