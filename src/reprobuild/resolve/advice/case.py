"""Input and result of advice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...errors import ResolveError
from ...lock.packages import PythonPackage
from ..resolution import Resolution
from ..torch import TorchScan
from ..uv_refusal import Refusal, RefusedError

Attempt = Callable[[Sequence[str]], Sequence[PythonPackage] | ResolveError]
"""Resolves requirements, or returns the reason why that is impossible."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """Unsatisfiable requirements, with the means to search for alternatives."""

    error: ResolveError
    requirements: Sequence[str]
    resolution: Resolution
    attempt: Attempt | None = None
    """Resolves alternatives; None: there are none."""
    scan: TorchScan | None = None
    """The torches of the index, where another than the pinned one may be taken."""

    @property
    def refusal(self) -> Refusal | None:
        """uv's refusal; None where the error is about something else than what fits."""
        return self.error.refusal if isinstance(self.error, RefusedError) else None

    @property
    def own(self) -> list[str]:
        """The requirements of the user's own request."""
        return [text for text in self.requirements if text in self.resolution.request.packages]


@dataclass(frozen=True, kw_only=True, slots=True)
class Advice:
    """Advice on a case; without lines, there is no advice."""

    lines: tuple[str, ...] = ()
    requirements: Sequence[str] | None = None
    """Satisfiable requirements that replace those of the case, with a line that says so."""
    cuda: str | None = None
    """The CUDA with which all would fit."""
