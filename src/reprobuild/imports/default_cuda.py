"""Choose the CUDA version for a file without one: that of the newest torch that it allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from packaging.specifiers import SpecifierSet

from ..errors import RequestError
from ..host.machine import architecture
from ..net.session import session
from ..request.model import PYTHONS
from ..resolve.target import TargetPython, glibc_here
from ..resolve.torch import TorchScan


@dataclass(frozen=True, slots=True)
class OwnCuda:
    """A CUDA version, and the torch version that requires it."""

    cuda: str
    torch: str


def cuda_of_torch(
    wanted: SpecifierSet,
    origin: str,
    python: str,
    *,
    platforms: Sequence[str] = (),
    as_of: date | None = None,
) -> OwnCuda | None:
    """Return the CUDA of the newest torch on the user's index that fits; None where none of those names one.

    It is looked for the first of the platforms, by default this machine's. Raises `RequestError` where the
    index has no such torch for this Python, and `ResolveError` where it cannot be read.
    """
    machine = platforms[0].rpartition("/")[2] if platforms else architecture()
    target = TargetPython(python, machine, glibc_here())
    with session() as http:
        scan = TorchScan(http, as_of)
        found = scan.newest_with_cuda(str(wanted), target)
        if found is not None:
            return OwnCuda(found[1], str(found[0]))
        if scan.releases(target, str(wanted)):
            return None
        others = (TargetPython(each, machine, target.glibc) for each in PYTHONS if each != python)
        other = next((each.python for each in others if scan.releases(each, str(wanted))), None)
    if not wanted:
        raise RequestError(
            f"{origin}: the index has no torch for Python {python} on {target.machine}",
            hint=f"give --python {other}, for which it has one"
            if other is not None
            else "if PyTorch's own index has one: give --cuda and --index pytorch",
        )
    raise RequestError(
        f"{origin}: the index has no torch {wanted} for Python {python} on {target.machine}",
        hint=f"give --python {other}, for which it has one; or give --loosen torch to take a newer torch"
        if other is not None
        else "give --loosen torch to take the newest; or, if PyTorch's own index has it, --cuda and "
        "--index pytorch",
    )
