"""Import environment.yml and conda-lock.yml, the latter with all its pins."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ..errors import RequestError
from ..lock.conda_lock import Environment, is_conda_lock, read_conda_lock, read_environment
from ..request.environment import environment
from ..request.table import Table, refused_as
from ..resolve.conda import CUDA, name_of
from ..resolve.torch import cuda_of_version
from . import target_system
from .common import Imported, merged, requirement_of
from .requirements import imported_lines

_MINOR = re.compile(r"python *[= ]{0,3}([0-9]+\.[0-9]+)([ .].*)?")
_FORGE = "conda-forge"
_OTHERS = ("defaults", "pytorch", "nvidia", "anaconda", "main", "conda")
"""Channels whose packages conda-forge has too, often by another version."""


def read_conda(file: Path, hosts: Collection[str] = (), loosen: Collection[str] = ()) -> Imported:
    """Read either file, detected by its content. ``loosen``: channels to replace by conda-forge.

    Raises `RequestError`.
    """
    platform = target_system.platform()
    if not is_conda_lock(file):
        written = read_environment(file, platform, lines=True)
        found = _from_forge(written, loosen)
        _check_channels(found, file)
        gone = tuple(channel for channel in written.channels if channel not in found.channels)
        environment = Imported(
            origin=str(file),
            name=found.name,
            requirements=tuple(requirement_of(text, str(file)) for text in found.pip),
            channels=found.channels,
            conda=found.packages,
            python=_python(found.packages),
            cuda=_cuda(found.packages),
            variables=_variables(found, file),
            loosened=(*gone, *(spec for spec in written.packages if spec not in found.packages))
            if gone
            else (),
            replaced=gone,
        )
        return merged(environment, imported_lines(found.lines, file, hosts) if found.lines else None)
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


def _variables(found: Environment, file: Path) -> Mapping[str, str]:
    """Return the variables that an image may set. Raises `RequestError` that names another one."""
    # conda writes numbers as text, too.
    texts = {name: str(value) if type(value) is int else value for name, value in found.variables.items()}
    with refused_as(RequestError, f"{file}: variables"):
        return dict(environment(Table({"environment": texts}, "")))


def _check_channels(found: Environment, file: Path) -> None:
    """Raise `RequestError` for ``defaults``, with the line that takes its packages from conda-forge."""
    if "defaults" not in found.channels:
        return
    others = [channel for channel in found.channels if channel in _OTHERS]
    raise RequestError(
        f"{file}: channels: 'defaults' is not a channel but the name of several of Anaconda's",
        hint=f"give {' '.join(f'--loosen {channel}' for channel in others)} to take the same packages from "
        f"{_FORGE}, or name each of Anaconda's channels by its address",
    )


def _from_forge(found: Environment, loosen: Collection[str]) -> Environment:
    """Return what is asked for with conda-forge in the place of some channels.

    PyTorch's and NVIDIA's own names of a CUDA become conda-forge's ``cuda-version``.
    """
    gone = [channel for channel in found.channels if channel in loosen]
    if not gone:
        return found
    channels = tuple(channel for channel in found.channels if channel not in gone)
    packages = [each for spec in found.packages for each in _as_forge_has_it(spec, gone)]
    return replace(
        found,
        channels=channels if _FORGE in channels else (*channels, _FORGE),
        packages=tuple(dict.fromkeys(packages)),
    )


def _as_forge_has_it(spec: str, gone: Collection[str]) -> Iterator[str]:
    channel, _, rest = spec.rpartition("::")
    bare = rest if channel in gone else spec
    form = re.fullmatch(r"(pytorch-cuda|cudatoolkit|cuda)( .*)?", bare)
    if form is not None:
        if form[2] is not None:
            yield f"cuda-version {_minor(form[2])}".strip()
        return
    # The strings of builds are the channel's own.
    form = re.fullmatch(r"(\S+ [=<>!~]*[0-9][^ ]*) \S+", bare)
    yield form[1] if form is not None else bare


def _minor(version: str) -> str:
    found = re.search(r"[0-9]+\.[0-9]+", version)
    return f"{found[0]}.*" if found is not None else ""


def _python(specs: tuple[str, ...]) -> str | None:
    return next((form[1] for spec in specs if (form := _MINOR.fullmatch(spec))), None)


def _cuda(specs: tuple[str, ...]) -> str | None:
    for spec in specs:
        version = re.search(r"[0-9]+\.[0-9]+", spec)
        if CUDA.fullmatch(name_of(spec)) and version is not None:
            return cuda_of_version(version[0])
    return None
