"""Context of one resolution for one platform, created once and passed down."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import requests

from ..host.host import Host
from ..lock.model import Lock
from ..request.dates import end_of
from ..request.model import Request, flavour
from .target import TargetPython


@dataclass(frozen=True, slots=True)
class Hints:
    """Further facts from an imported file, beside its request."""

    hashes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Package → the SHA-256 of the wheels that it names; of several wheels of a version those are taken."""
    pythons: Collection[str] = ()
    """The minor versions of Python that it allows, which a refusal may name; empty: any."""
    order: Sequence[str] = ()
    """The packages as it lists them, by normalised name: uv prefers the new ones of the first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Resolution:
    """A request, its target, and the packages chosen so far."""

    request: Request
    target: TargetPython
    host: Host
    session: requests.Session
    existing: Lock | None = None
    """An earlier lock; its pins are preferred."""
    upgrade: frozenset[str] | None = None
    """The packages whose versions in ``existing`` need not stay; None: all."""
    provided: Mapping[str, str] = field(default_factory=dict)
    """Versions of conda's packages by name."""
    hashes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Package → the SHA-256 of the wheels that an imported file names."""
    order: Sequence[str] = ()
    """See `Hints`; of the packages of a request the order says nothing."""
    notes: list[str] = field(default_factory=list)
    """What the user should know of the choice; each step adds its lines."""

    @property
    def until(self) -> datetime | None:
        """What was published at this moment or later does not count."""
        return None if self.request.as_of is None else end_of(self.request.as_of)

    @property
    def backend(self) -> str | None:
        """uv's name of PyTorch's own index for the request's CUDA, where that index is asked for."""
        return None if self.request.index is None else flavour(self.request.cuda)

    def kept(self, name: str) -> bool:
        """Whether the version of a package in the earlier lock stays, if it has one."""
        return self.existing is not None and self.upgrade is not None and name not in self.upgrade
