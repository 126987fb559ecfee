"""Suggest the nearest set of packages, where the pins of a request conflict."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ...errors import ResolveError
from .case import Advice, Case

_MOST = 6
"""Groups of pins that are tried one by one, at about half a second each."""


def advise(case: Case) -> Advice:
    """Name each pin to remove so that the others can stay, with the version that results.

    Nothing where taking pins away does not help, or too many would have to go.
    """
    refusal, requirements, attempt = case.refusal, case.requirements, case.attempt
    if refusal is None or refusal.missing_wheels or attempt is None:
        return Advice()  # it is not the versions
    groups: dict[str, set[str]] = {}
    for text in case.own:
        if Requirement(text).specifier and canonicalize_name(Requirement(text).name) in refusal.named:
            groups.setdefault(_group(text), set())
    for text in case.own:
        if Requirement(text).specifier and _group(text) in groups:
            groups[_group(text)].add(text)
    if not groups or len(groups) > _MOST:
        return Advice()
    gone = set(groups)
    found = attempt(_without(requirements, _texts(groups, gone)))
    if isinstance(found, ResolveError):
        return Advice()
    for group in groups if len(groups) > 1 else ():
        better = attempt(_without(requirements, _texts(groups, gone - {group})))
        if not isinstance(better, ResolveError) and len(gone) > 1:
            gone.discard(group)
            found = better
    versions = {package.name: package.version for package in found}
    lines = []
    for group in sorted(gone):
        pins = ", ".join(sorted(groups[group]))
        fits = f"{group} {versions[group]} fits" if group in versions else "others fit"
        lines.append(
            f"{pins} cannot be kept with the others; {fits}: change it, or give --loosen "
            f"{shlex.quote(group)} with --from"
        )
    return Advice(lines=tuple(lines))


def _group(text: str) -> str:
    """Return the group of a pin: its own name, or one name for all CUDA libraries."""
    name = canonicalize_name(Requirement(text).name)
    return "nvidia-*" if name.startswith("nvidia-") else name


def _texts(groups: Mapping[str, set[str]], gone: Collection[str]) -> set[str]:
    return {text for group in gone for text in groups[group]}


def _without(requirements: Sequence[str], gone: Collection[str]) -> list[str]:
    """Return requirements, some of them without their versions."""
    kept = []
    for text in requirements:
        requirement = Requirement(text)
        extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
        kept.append(f"{requirement.name}{extras}" if text in gone else text)
    return kept
