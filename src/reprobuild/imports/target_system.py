"""The system that a file is read for: a kind of machine, and the Python that the image gets.

A Debian release fixes the patch version of its Python. That of a base image, of conda or of a standalone
build is asked for where a marker or ``requires-python`` of the file depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from packaging.markers import Marker
from packaging.specifiers import SpecifierSet

from ..errors import RequestError
from ..host.machine import architecture
from ..request.model import DEBIAN_PATCHES, DEBIAN_PYTHONS, PYTHONS, Request
from ..resolve import target as of_target
from ..resolve.target import TargetPython

_VERSION = re.compile(r"([0-9]+\.[0-9]+)(?:\.([0-9]{1,4}))?")
_NEWEST = 99
_WHOLE = ("python_full_version", "implementation_version")
_OF_KERNEL = ("platform_release", "platform_version")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadFor:
    """A kind of machine, and the versions of Python on it."""

    architecture: str
    """Debian's name."""
    versions: Mapping[str, str] = field(default_factory=lambda: DEBIAN_PATCHES)
    """Minor version → the whole one, where it is known."""
    depends: set[str] = field(default_factory=set)
    """The minor versions for which something that was asked has another answer with another patch version."""


_SYSTEM: ContextVar[ReadFor | None] = ContextVar("system", default=None)
_KERNELS: ContextVar[set[str] | None] = ContextVar("kernels", default=None)


@contextmanager
def reading_for(system: ReadFor) -> Iterator[None]:
    """Let the block read files for a system; by default it is this machine with Debian's Pythons."""
    token = _SYSTEM.set(system)
    try:
        yield
    finally:
        _SYSTEM.reset(token)


@contextmanager
def noting_kernels() -> Iterator[set[str]]:
    """Collect the markers that the block reads and that ask for the kernel, which no image has."""
    found = set[str]()
    token = _KERNELS.set(found)
    try:
        yield found
    finally:
        _KERNELS.reset(token)


def _system() -> ReadFor:
    return _SYSTEM.get() or ReadFor(architecture=architecture())


def platform() -> str:
    """Return the platform that files are read for, as OCI names it."""
    return f"linux/{_system().architecture}"


def target(python: str) -> TargetPython:
    """Return what markers are read for with a minor version of Python."""
    system = _system()
    return TargetPython(python, system.architecture, (2, 99), system.versions.get(python, ""))


def python_release(python: str) -> str:
    """Return the version that an image gets for a minor version of Python, as far as it is known."""
    return _system().versions.get(python, python)


def holds(marker: Marker | None, markers: Mapping[str, str]) -> bool | None:
    """Whether a stranger's marker is true where ``markers`` hold: see `reprobuild.resolve.target.holds`."""
    answer = of_target.holds(marker, markers)
    text, python = str(marker), markers["python_version"]
    if any(name in text for name in _OF_KERNEL) and (kernels := _KERNELS.get()) is not None:
        kernels.add(text)
    if marker is not None and any(name in text for name in _WHOLE):
        others = ({**markers, **dict.fromkeys(_WHOLE, each)} for each in _around(text, python))
        if any(of_target.holds(marker, each) is not answer for each in others):
            _system().depends.add(python)
    return answer


def allows(requires: SpecifierSet | str, python: str) -> bool:
    """Return whether a ``requires-python`` allows the Python that an image gets for a minor version.

    Where the patch version is not known, one that fits suffices.
    """
    here = target(python)
    answer = here.fits(requires)
    others = {replace(here, version=each).fits(requires) for each in _around(str(requires), python)}
    if others <= {answer}:
        return answer
    _system().depends.add(python)
    return answer or python not in _system().versions


def hint_on_patches(requires: SpecifierSet | str) -> str | None:
    """Return how to get an allowed Python where Debian has the minor version, but not the patch version."""
    for python, version in _system().versions.items():
        here = target(python)
        if any(replace(here, version=each).fits(requires) for each in _around(str(requires), python)):
            suite = DEBIAN_PYTHONS[python]
            other = next(each for each in DEBIAN_PYTHONS.values() if each not in {suite, "bullseye"})
            return (
                f"Debian {suite} has Python {version}: give --debian {other}, "
                f"which gets the newest {python}, or a --base-image that has one that fits"
            )
    return None


def _around(text: str, python: str) -> Iterator[str]:
    """Yield versions of a Python of which a condition may say different things."""
    for minor, patch in _VERSION.findall(text):
        if minor == python:
            numbers = {0, int(patch or 0) - 1, int(patch or 0), int(patch or 0) + 1, _NEWEST}
            yield from (f"{python}.{number}" for number in sorted(numbers) if number >= 0)


def systems_for(
    platforms: Sequence[str],
    versions: Mapping[str, str],
    read: Callable[[], Request],
    version_of: Callable[[Request, str], str],
) -> dict[str, ReadFor]:
    """Return the system to read a file for on each platform, by default on this machine's.

    ``versions`` are those of Python that are known before; ``read`` reads the file and returns the request,
    ``version_of`` returns the Python of its image on a machine, and is called where an answer depends on it.
    Raises `RequestError` where the file asks for different things on each platform.
    """
    systems: dict[str, ReadFor] = {}
    requests: list[Request] = []
    for name in platforms or (f"linux/{architecture()}",):
        machine = name.rpartition("/")[2]
        known: dict[str, str] = {}
        for _ in PYTHONS:  # each may turn out not to fit, and another is taken
            system = ReadFor(architecture=machine, versions={**versions, **known})
            with reading_for(system):
                request = read()
            python = request.python
            if python not in system.depends or python in known:
                break
            known[python] = version_of(request, machine)
            if known[python] == system.versions.get(python):
                break
        systems[name] = system
        requests.append(request)
    for name, request in zip(systems, requests, strict=True):
        if request != requests[0]:
            lines = "; ".join(requests[0].differences(request))
            raise RequestError(
                f"the file asks for different things on {next(iter(systems))} and on {name}: {lines}",
                hint="give one --platform, and a --name for each",
            )
    return systems
