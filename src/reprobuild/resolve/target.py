"""Target of the wheels: one Python on one Linux; decides which wheel of a package fits."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from packaging.markers import Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag
from packaging.utils import BuildTag, InvalidWheelFilename, parse_wheel_filename

from ..lock.wheel_tags import MACHINES, wheel_tags
from ..request.model import DEBIAN_PATCHES

_NONE = frozenset[str]()
# Which glibc versions uv has a name for (`uv pip compile --help`, --python-platform); a lower one is safe.
_UV_GLIBCS = (17, 28, *range(31, 41))


def holds(marker: Marker | None, markers: Mapping[str, str]) -> bool | None:
    """Whether a stranger's marker is true where ``markers`` hold, without extras and groups of a lock.

    None for one that is neither true nor false, such as ``python_version ~= "new"``.
    """
    if marker is None:
        return True
    try:
        return marker.evaluate({"extras": _NONE, "dependency_groups": _NONE, **markers})
    except (UndefinedComparison, UndefinedEnvironmentName):
        return None


@dataclass(frozen=True)
class TargetPython:
    """A CPython version, a machine and the C library of the Debian release."""

    python: str
    """Its minor version, like ``3.11``."""
    architecture: str
    """Debian's name: ``amd64`` or ``arm64``."""
    glibc: tuple[int, int]
    version: str = ""
    """The whole version, like ``3.11.2``; by default Debian's of that minor version, or the newest."""

    def __post_init__(self) -> None:
        """Fill in the version."""
        if not self.version:
            # A standalone build is the newest, whatever that is.
            object.__setattr__(self, "version", DEBIAN_PATCHES.get(self.python, f"{self.python}.99"))

    def fits(self, requires: str | SpecifierSet | None) -> bool:
        """Return whether a ``Requires-Python`` allows it; one that is no specifier does."""
        try:
            return not requires or SpecifierSet(str(requires)).contains(self.version, prereleases=True)
        except InvalidSpecifier:
            return True

    @property
    def machine(self) -> str:
        """The name that Python and wheels use: ``x86_64`` or ``aarch64``."""
        return MACHINES[self.architecture]

    @property
    def platform(self) -> str:
        """As in OCI."""
        return f"linux/{self.architecture}"

    @property
    def uv_platform(self) -> str:
        """The value of uv's ``--python-platform``: the newest C library that uv knows and the image has."""
        known = [minor for minor in _UV_GLIBCS if (2, minor) <= self.glibc]
        return f"{self.machine}-manylinux_2_{max(known, default=_UV_GLIBCS[0])}"

    @property
    def markers(self) -> dict[str, str]:
        """The environment in which requirements are read (PEP 508)."""
        return {
            "implementation_name": "cpython",
            "implementation_version": self.version,
            "os_name": "posix",
            "platform_machine": self.machine,
            "platform_python_implementation": "CPython",
            # The kernel is that of the machine which runs the image; uv reads them so, too.
            "platform_release": "",
            "platform_system": "Linux",
            "platform_version": "",
            "python_full_version": self.version,
            "python_version": self.python,
            "sys_platform": "linux",
            "extra": "",
        }

    def best(self, filenames: Sequence[str]) -> str | None:
        """Return the wheel that an installer in the image would choose; None when none fits."""
        ranked = [(rank, name) for name in filenames if (rank := self._rank(name)) is not None]
        # Smaller ranks are closer; of equal ones the higher build wins (PEP 427), then the name decides.
        return (
            min(ranked, key=lambda pair: (pair[0][0], _descending(pair[0][1]), pair[1]))[1]
            if ranked
            else None
        )

    def _rank(self, filename: str) -> tuple[int, BuildTag] | None:
        try:
            _, _, build, tags = parse_wheel_filename(filename)
        except InvalidWheelFilename:
            return None
        ranks = [self._tags[tag] for tag in tags if tag in self._tags]
        return (min(ranks), build) if ranks else None

    @cached_property
    def _tags(self) -> dict[Tag, int]:
        return wheel_tags(self.python, self.architecture, self.glibc)


def glibc_here() -> tuple[int, int]:
    """Return the version of this machine's glibc; without glibc, the oldest that wheels support."""
    try:
        form = re.fullmatch(r"glibc ([0-9]+)\.([0-9]+).*", os.confstr("CS_GNU_LIBC_VERSION") or "")
    except (ValueError, OSError):
        form = None
    return (int(form[1]), int(form[2])) if form is not None else (2, 17)


def _descending(build: BuildTag) -> tuple[int, str]:
    return (-build[0], build[1]) if build else (0, "")
