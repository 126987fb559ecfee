"""The keys of a request that an imported file decides, below the user's own flags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import RequestError
from ..request.model import Request
from .choose_cuda import choose_cuda
from .common import Imported, Keys, cuda_of_local, fitting_python, wanted_of


def request_table(imported: Imported, given: Mapping[str, Any], cuda: str | None = None) -> dict[str, Any]:
    """Return the request's keys that a file decides; ``given`` holds the user's own, which go before it.

    ``cuda`` is what `choose_cuda` returned; by default it is called with the file and the flags alone. Raises
    `RequestError` where nothing says which CUDA, or the file allows none of the Pythons there are.
    """
    python = fitting_python(imported, given.get("python"))
    wanted = wanted_of(imported, python)
    cuda = cuda or choose_cuda(imported, given).cuda
    if imported.index is not None or wanted.cuda is not None:
        _check_flavour(wanted, given, imported.origin)
    table: dict[str, Any] = {"python": python, "cuda": cuda, "packages": list(wanted.packages)}
    if imported.conda:
        table["conda"] = {"channels": list(imported.channels), "packages": list(imported.conda)}
    if imported.index is not None:
        table["index"] = imported.index
    for key in ("loosened", "constraints", "overrides"):
        if values := getattr(wanted if key != "loosened" else imported, key):
            table[key] = list(values)
    if imported.variables:
        table["environment"] = dict(imported.variables)
    torch = given.get("torch") or wanted.torch_key
    if torch is not None:
        table["torch"] = torch
    return table | {"name": imported.request_name}


def lines_on_flags(imported: Imported, given: Mapping[str, Any], request: Request) -> Iterator[str]:
    """Yield a line for each flag that goes before another torch or index of PyTorch's that the file names."""
    if imported.index is not None and imported.cuda is not None and imported.cuda != request.cuda:
        yield (
            f"{imported.origin}: names PyTorch's index for {_named(imported.cuda)}; with --cuda "
            f"{request.cuda} the one for {_named(request.cuda)} is asked"
        )
    asked, chosen = wanted_of(imported, request.python).torch, given.get("torch")
    if chosen is None or asked is None or chosen == str(asked) or asked.contains(chosen, prereleases=True):
        return
    yield f"{imported.origin}: asks for torch{asked}; --torch {chosen} counts in its place"


def _check_flavour(wanted: Keys, given: Mapping[str, Any], origin: str) -> None:
    """Raise `RequestError` if the file pins a build of torch for another CUDA than the user requests."""
    local = cuda_of_local(wanted.torch_key) if "torch" not in given else None
    cuda = given.get("cuda")
    if local is not None and cuda is not None and local != cuda:
        raise RequestError(
            f"{origin}: pins torch {wanted.torch_key}, a build for {_named(local)}; "
            f"asked for is {_named(cuda)}",
            hint=f"give --cuda {local}, or --loosen torch to get the newest for {_named(cuda)}",
        )


def _named(cuda: str) -> str:
    return "the CPU" if cuda == "cpu" else f"CUDA {cuda}"
