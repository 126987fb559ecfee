"""environment.yml and conda-lock.yml → what they ask for; a conda-lock.yml with all of its pins."""

from __future__ import annotations

import re
from pathlib import Path

from ..lock.conda_lock import is_conda_lock, read_conda_lock, read_environment
from ..net.debian_mirrors import architecture
from ..resolve.conda import CUDA, name_of
from ..resolve.torch import cuda_of_version
from .common import Imported, requirement_of

_MINOR = re.compile(r"python *[= ]{0,3}([0-9]+\.[0-9]+)([ .].*)?")


def read_conda(file: Path) -> Imported:
    """Read either file, told by its content. Raises `RequestError`."""
    platform = f"linux/{architecture()}"
    if not is_conda_lock(file):
        found = read_environment(file, platform)
        return Imported(
            origin=str(file),
            name=found.name,
            requirements=tuple(requirement_of(text, str(file)) for text in found.pip),
            channels=found.channels,
            conda=found.packages,
            python=_python(found.packages),
            cuda=_cuda(found.packages),
        )
    lock = read_conda_lock(file, platform)
    specs = tuple(f"{entry.name} =={entry.version} {entry.build or ''}".strip() for entry in lock.conda)
    hashes = {f"conda:{entry.name}": frozenset({entry.sha256}) for entry in lock.conda}
    hashes |= {name: frozenset({sha256}) for name, _, sha256 in lock.pip}
    return Imported(
        origin=str(file),
        name=re.sub(r"[.-]?conda-lock$", "", file.stem) or file.absolute().parent.name,
        requirements=tuple(requirement_of(f"{name}=={version}", str(file)) for name, version, _ in lock.pip),
        hashes=hashes,
        channels=lock.channels,
        conda=specs,
        python=_python(specs),
        cuda=_cuda(specs),
    )


def _python(specs: tuple[str, ...]) -> str | None:
    return next((form[1] for spec in specs if (form := _MINOR.fullmatch(spec))), None)


def _cuda(specs: tuple[str, ...]) -> str | None:
    for spec in specs:
        version = re.search(r"[0-9]+\.[0-9]+", spec)
        if CUDA.fullmatch(name_of(spec)) and version is not None:
            return cuda_of_version(version[0])
    return None
