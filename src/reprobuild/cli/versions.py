"""The command ``versions``."""

from __future__ import annotations

import re

import click
from packaging.version import Version

from ..errors import ResolveError
from ..host.host import Host
from ..host.machine import architecture
from ..net.session import session
from ..render.image_config import oldest_driver
from ..request.model import DEFAULT_PYTHON
from ..resolve.target import TargetPython, glibc_here
from ..resolve.torch import TorchScan
from .output import as_json, columns, emit


@click.command()
@click.option("--python", default=DEFAULT_PYTHON, show_default=True, metavar="X.Y", help="Python version.")
@as_json
@click.pass_obj
def versions(host: Host, *, python: str, json_: bool) -> None:
    """List the CUDA versions that your index has PyTorch for, each with the newest PyTorch.

    DRIVER is the oldest NVIDIA driver for that CUDA. `none` is a PyTorch that names no CUDA, as builds for
    CPUs do.
    PyTorch's own index, which `--index pytorch` takes, has a page for each CUDA and is not read.

    \b
    reprobuild versions
    reprobuild versions --python 3.13
    """
    if not re.fullmatch(r"3\.[0-9]{1,2}", python):
        raise click.UsageError(f"--python {python!r}: expected a minor version, like 3.11")
    target = TargetPython(python, architecture(), glibc_here())
    host.console.step(f"reading the releases of torch for Python {python}")
    with session() as http:
        found = TorchScan(http, None).newest_of_each(target)
    if not found:
        raise ResolveError(
            f"the index has no torch for Python {python} on {target.machine}",
            hint="give another --python, or set UV_INDEX to an index that has it",
        )
    cudas = sorted((cuda for cuda in found if cuda is not None), key=Version, reverse=True)
    rows = [
        (cuda, str(found[cuda]), None if cuda is None else oldest_driver(cuda))
        for cuda in (*cudas, None)
        if cuda in found
    ]
    if json_:
        emit([dict(zip(("cuda", "torch", "driver"), row, strict=True)) for row in rows])
    else:
        columns(("CUDA", "PYTORCH", "DRIVER"), [[each or "none" for each in row] for row in rows])
