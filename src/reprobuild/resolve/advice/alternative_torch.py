"""Another torch than the newest for its CUDA, where a package of the request does not take that one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from packaging.version import Version

from ...errors import ResolveError
from ...lock.model import PythonPackage
from ...request.model import Request
from ..target import TargetPython
from ..torch import TorchScan
from ..uv_refusal import RefusedError

_PINNED = "torch==="


@dataclass(frozen=True, slots=True)
class Other:
    """What was found: requirements that fit, with a note; or a hint, where those are for another CUDA."""

    requirements: Sequence[str] | None
    said: str
    cuda: str | None = None


def other_torch(
    error: ResolveError,
    requirements: Sequence[str],
    request: Request,
    target: TargetPython,
    *,
    scan: TorchScan,
    attempt: Callable[[Sequence[str]], Sequence[PythonPackage] | ResolveError],
) -> Other | None:
    """Return what fits in place of the torch that is pinned; None where torch is not the cause.

    Torches for the request's CUDA come first, the newest that fits. ``attempt`` resolves some, or says why
    nothing fits.
    """
    pinned = next((text for text in requirements if text.startswith(_PINNED)), None)
    if pinned is None or not isinstance(error, RefusedError):
        return None
    if not any(name == "torch" and version for name, version in error.refusal.versions):
        return None
    rest = [text for text in requirements if text != pinned]

    def of(specifier: str) -> str | None:
        found = attempt([f"torch{specifier}", *rest])
        if isinstance(found, ResolveError):
            return None
        return next((package.version for package in found if package.name == "torch"), None)

    version = of(request.torch_specifier)
    if version is None:
        return None
    cuda = scan.cuda_of_version(version, target)
    if cuda != request.cuda:
        others = [str(each) for each in scan.for_another_cuda(request.cuda, request.torch_specifier, target)]
        specifiers = ",".join(filter(None, [request.torch_specifier, *(f"!={each}" for each in others)]))
        own = of(specifiers)
        if own is None and cuda is None:
            return None
        if own is None:
            said = f"torch {version}, which is built for CUDA {cuda}, fits the others: give --cuda {cuda}"
            return Other(None, said, cuda)
        version = own
    newest = pinned.removeprefix(_PINNED)
    return Other(
        [f"{_PINNED}{Version(version)}", *rest],
        f"torch {version} is taken: {newest}, the newest for CUDA {request.cuda}, does not fit the others",
    )
