"""Suggest an older torch, where a package does not support the newest for its CUDA."""

from __future__ import annotations

from packaging.version import Version

from ...errors import ResolveError
from .case import Advice, Case

_PINNED = "torch==="


def advise(case: Case) -> Advice:
    """Return what fits in place of the torch that is pinned, or name the CUDA of the torch that would.

    Torches for the request's CUDA come first, the newest that fits.
    """
    pinned = next((text for text in case.requirements if text.startswith(_PINNED)), None)
    refusal, scan, attempt = case.refusal, case.scan, case.attempt
    if pinned is None or refusal is None or scan is None or attempt is None:
        return Advice()
    if not any(name == "torch" and version for name, version in refusal.versions):
        return Advice()
    request, target = case.resolution.request, case.resolution.target
    rest = [text for text in case.requirements if text != pinned]

    def of(specifier: str) -> str | None:
        found = attempt([f"torch{specifier}", *rest])
        if isinstance(found, ResolveError):
            return None
        return next((package.version for package in found if package.name == "torch"), None)

    version = of(request.torch_specifier)
    if version is None:
        return Advice()
    cuda = scan.cuda_of_version(version, target)
    if cuda != request.cuda:
        others = [str(each) for each in scan.for_another_cuda(request.cuda, request.torch_specifier, target)]
        specifiers = ",".join(filter(None, [request.torch_specifier, *(f"!={each}" for each in others)]))
        own = of(specifiers)
        if own is None and cuda is None:
            return Advice()
        if own is None:
            said = f"torch {version}, which is built for CUDA {cuda}, fits the others: give --cuda {cuda}"
            return Advice(lines=(said,), cuda=cuda)
        version = own
    newest = pinned.removeprefix(_PINNED)
    said = f"torch {version} is taken: {newest}, the newest for CUDA {request.cuda}, does not fit the others"
    return Advice(lines=(said,), requirements=[f"{_PINNED}{Version(version)}", *rest])
