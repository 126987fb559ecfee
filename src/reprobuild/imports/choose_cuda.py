"""Choose the CUDA version of an import: that of the flag, the file, a request, or the newest torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from packaging.specifiers import SpecifierSet

from ..errors import RequestError
from ..host.machine import architecture
from ..net.session import session
from ..request.model import PYTHONS
from ..resolve.target import TargetPython, glibc_here
from ..resolve.torch import TorchScan
from .common import Imported, fitting_python, wanted_of


@dataclass(frozen=True, slots=True)
class ChosenCuda:
    """A CUDA version."""

    cuda: str
    torch: str | None = None
    """The version of torch that requires it, where no more than that decided."""


def choose_cuda(
    imported: Imported,
    given: Mapping[str, Any],
    *,
    of_request: Callable[[str], str | None] | None = None,
    newest: Callable[[SpecifierSet, str, str], ChosenCuda | None] | None = None,
) -> ChosenCuda:
    """Return the CUDA version, from the first of these that names one: the flag, the file, a request, torch.

    ``given`` holds the user's flags. ``of_request`` returns the CUDA version of the request that has a name
    already, and ``newest`` is `cuda_of_torch`. Neither is asked if the flags choose torch, or it is conda's.
    Raises `RequestError` if nothing names a version, or the file allows none of the Pythons there are.
    """
    python = fitting_python(imported, given.get("python"))
    wanted = wanted_of(imported, python)
    if cuda := given.get("cuda") or wanted.cuda:
        return ChosenCuda(cuda)
    if "torch" not in given and (wanted.torch is not None or not imported.conda):
        name = given.get("name") or imported.request_name
        if of_request is not None and (cuda := of_request(name)) is not None:
            return ChosenCuda(cuda)
        torch = SpecifierSet() if wanted.torch is None else wanted.torch
        if newest is not None and (chosen := newest(torch, imported.origin, python)) is not None:
            return chosen
    raise RequestError(
        f"{imported.origin}: does not say which CUDA PyTorch is for",
        hint="give --cuda 12.8, or another that your driver supports; or --cuda cpu",
    )


def cuda_of_torch(
    wanted: SpecifierSet,
    origin: str,
    python: str,
    *,
    platforms: Sequence[str] = (),
    as_of: date | None = None,
) -> ChosenCuda | None:
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
            return ChosenCuda(found[1], str(found[0]))
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
