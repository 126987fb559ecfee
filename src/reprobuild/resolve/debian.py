"""Debian packages through apt: a private root, the archive's signature verified, nothing installed.

The host's own settings decide only where packages come from (mirrors, proxies, logins): its mirrors of other
makers, pins, hooks and foreign architectures have no part, so that any machine finds the same packages.
"""

from __future__ import annotations

import difflib
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from ..errors import ResolveError
from ..fetch.debian_mirrors import MAIN, OVERRIDES, SECURITY, mirrors
from ..fetch.debian_snapshot import VARIABLE, dated_mirrors
from ..host.console import Console
from ..lock.merged_usr import CONVERTS, IS_MERGED
from ..lock.packages import DebianPackage
from .apt import Apt, legible

BASE = ("apt", "ca-certificates")
"""Beside Debian's essential packages and the interpreter. The interpreter's standard library brings ``venv``;
only ``ensurepip`` would need python3.X-venv, and pip is a locked wheel."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DebianRequest:
    """The inputs of the Debian part of a lock; equal inputs need no new resolve."""

    suite: str
    architecture: str
    """Debian's name; apt needs none of its programs to resolve for it."""
    python: str
    """A minor version; empty if conda installs Python."""
    apt: tuple[str, ...]
    as_of: date | None = None
    """Cut-off date of the archive's packages."""
    installed: str = ""
    """What a base image has already, as dpkg's status file; empty: nothing, the packages are the base."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DebianResolution:
    """The packages that apt chose, and the state of the archives that it chose from."""

    packages: tuple[DebianPackage, ...]
    releases: Sequence[str]
    """SHA-256 of each archive's signed list."""


def resolve_debian(
    wanted: DebianRequest, *, keep: Mapping[str, str], console: Console
) -> tuple[DebianPackage, ...]:
    """Return the packages of `resolve_debian_state`. Raises as it does."""
    return resolve_debian_state(wanted, keep=keep, console=console).packages


def resolve_debian_state(
    wanted: DebianRequest, *, keep: Mapping[str, str], console: Console
) -> DebianResolution:
    """Return the packages to install, closure included, without recommended ones; and of which archives.

    ``keep`` has the versions, by name, that shall stay where the archive still offers them. Raises
    `HostError` without apt or a mirror; `ResolveError` when the archive cannot be read or verified, or has
    not what is wanted.
    """
    dated = None if wanted.as_of is None else dated_mirrors(wanted.suite, wanted.as_of)
    served = mirrors(wanted.suite) if dated is None else dated
    if SECURITY not in served:
        console.warn(
            f"no mirror of {SECURITY} is set up, so the Debian packages lack security updates; "
            f"{OVERRIDES[SECURITY]} can name one"
        )
    with tempfile.TemporaryDirectory(prefix="reprobuild-apt-") as folder:
        apt = Apt(
            Path(folder),
            wanted.suite,
            served,
            architecture=wanted.architecture,
            installed=wanted.installed,
            dated=dated is not None,
        )
        apt.update()
        if wanted.as_of is not None and dated is None:
            _check_date(wanted.suite, wanted.as_of, apt.states())
        names = apt.names()
        _check_names(wanted, names)
        interpreter = [f"python{wanted.python}"] if wanted.python else []
        system = [] if wanted.installed else ["?essential", *BASE]
        targets = [*system, *interpreter, *wanted.apt]
        apt.prefer(keep)
        result = apt.plan(targets)
        if result.returncode != 0 and keep:
            console.warn(
                "the Debian packages in the lock no longer fit together; all of them are resolved again"
            )
            apt.prefer({})
            result = apt.plan(targets)
        if result.returncode != 0:
            raise ResolveError(
                f"Debian {wanted.suite} has no set of packages that fits this request:\n{legible(result)}",
                hint="change the request's apt packages",
            )
        packages = apt.packages(result.stdout.decode(), none=bool(wanted.installed))
        if system and CONVERTS not in keep:
            packages = _without_perl(packages, targets, apt)
        return DebianResolution(packages=packages, releases=apt.releases())


def _without_perl(
    packages: tuple[DebianPackage, ...], targets: Sequence[str], apt: Apt
) -> tuple[DebianPackage, ...]:
    """Replace usrmerge, which depends on Perl's modules, by usr-is-merged where possible."""
    if not any(package.name == CONVERTS for package in packages):
        return packages
    result = apt.plan([*targets, IS_MERGED])
    found = apt.packages(result.stdout.decode(), none=False) if result.returncode == 0 else packages
    return packages if any(package.name == CONVERTS for package in found) else found


def _check_date(suite: str, as_of: date, states: Mapping[str, datetime]) -> None:
    """Refuse a mirror that is newer than the cut-off date: it has one state of a release only."""
    young = {name: state for name, state in states.items() if state.date() > as_of}
    if young:
        found = ", ".join(f"{name} of {state.date()}" for name, state in sorted(young.items()))
        raise ResolveError(
            f"as-of {as_of} cannot be applied to Debian {suite}: its mirrors have only {found}",
            hint=f"name a Debian snapshot server, which has every earlier state, in {VARIABLE}; or a "
            f"mirror that has not changed since, in {OVERRIDES[MAIN]}; or remove as-of from the request",
        )


def _check_names(wanted: DebianRequest, names: Sequence[str]) -> None:
    """Refuse unknown names: apt reads ``git-`` as a removal and ``lib.*`` as a pattern."""
    interpreter = f"python{wanted.python}"
    if wanted.python and interpreter not in names:
        have = [name.removeprefix("python") for name in names if re.fullmatch(r"python[0-9]+\.[0-9]+", name)]
        raise ResolveError(
            f"Debian {wanted.suite} has no Python {wanted.python}; it has {' and '.join(have) or 'none'}",
            hint="ask for a Python that it has, or for another Debian release with base.debian",
        )
    for name in wanted.apt:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=3)
            raise ResolveError(
                f"Debian {wanted.suite} has no package {name}",
                hint=f"similar names: {', '.join(close)}" if close else "correct the request's apt packages",
            )
