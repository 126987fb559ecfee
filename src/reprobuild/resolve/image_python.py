"""The whole version of the Python of an image, before its packages are resolved."""

from __future__ import annotations

from ..host.host import Host
from ..lock.model import Lock
from ..request.model import DEBIAN_PATCHES, Request
from .base_image import resolve_base
from .conda import resolve_conda
from .debian_system import System
from .standalone_python import standalone_version
from .target import TargetPython


def image_python(request: Request, machine: str, *, existing: Lock | None, host: Host) -> str:
    """Return the version of Python that the lock of a request has on a machine (``amd64``).

    What ``existing`` pins stays. Raises as `reprobuild.resolve.resolver.resolve` does.
    """
    if request.conda is None and request.base_image is None:
        if request.is_standalone:
            return standalone_version(request, machine, existing)
        return DEBIAN_PATCHES.get(request.python, request.python)
    system = System(request, machine, resolve_base(request, machine, existing=existing, host=host))
    if request.conda is None and system.base is not None and system.base.python_version:
        return system.base.python_version
    debian = system.packages(existing, frozenset(), host)
    if request.conda is None:
        return system.python_version(debian)
    target = TargetPython(request.python, machine, system.glibc(debian))
    conda = resolve_conda(request, request.conda, target, existing=existing, upgrade=())
    return next(package.version for package in conda if package.name == "python")
