"""Lock the conda part of a request; a CUDA request never ends in a CPU build."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from ..errors import ResolveError
from ..lock.conda_lock import PLATFORMS
from ..lock.model import Lock
from ..lock.packages import CondaPackage, PythonPackage
from ..request.model import Conda, Request
from .target import TargetPython
from .torch import cuda_of_version

_TORCH = ("pytorch", "pytorch-gpu", "pytorch-cpu")
_CONDA_NAMES = {"torch": "pytorch"}
"""What conda calls a wheel, where that is not its own name."""
CUDA = re.compile(r"cuda-version|cuda-cudart|cudatoolkit|pytorch-cuda|libcudart")
"""Packages whose version identifies the CUDA version."""


def torch_from_conda(packages: Sequence[CondaPackage]) -> bool:
    """Whether conda installs torch, requested or as a dependency; otherwise it is a wheel."""
    return any(package.name == "pytorch" for package in packages)


def check_wheels(conda: Sequence[CondaPackage], python: Sequence[PythonPackage]) -> None:
    """Raise `ResolveError` for a wheel that a conda package excludes by its constraints.

    What the wheels want of conda's packages is uv's to see: it knows their versions.
    """
    wheels = {_CONDA_NAMES.get(wheel.name, wheel.name): wheel for wheel in python}
    for package in conda:
        for spec in package.constrains:
            wheel = wheels.get(name_of(spec))
            if wheel is None:
                continue
            from .conda_solver import lets_in  # noqa: PLC0415 -- py-rattler, as in _solve

            if not lets_in(spec, wheel.version):
                raise ResolveError(
                    f"{package.name} {package.version} from conda requires {spec}, and the "
                    f"wheel is {wheel.name} {wheel.version}",
                    hint="ask for other versions, or for both packages from conda",
                )


def resolve_conda(
    request: Request, conda: Conda, target: TargetPython, *, existing: Lock | None, upgrade: Collection[str]
) -> tuple[CondaPackage, ...]:
    """Return the locked conda packages, Python among them.

    Those of ``existing`` stay where they fit, but for the names in ``upgrade``. Raises `ResolveError` with
    the solver's reason, or when torch would be another build than the request's CUDA asks for.
    """
    before = existing.request if existing is not None else None
    kept = [p for p in existing.conda if p.name not in upgrade] if existing is not None else []
    if existing is not None and before is not None and len(kept) == len(existing.conda) > 0:
        same = ("conda", "cuda", "python", "torch", "as_of", "suite")
        if all(getattr(before, key) == getattr(request, key) for key in same):
            return tuple(existing.conda)
    packages = _solve(request, conda, target, kept)
    _check(request, conda, packages)
    return packages


def _solve(
    request: Request, conda: Conda, target: TargetPython, kept: Sequence[CondaPackage]
) -> tuple[CondaPackage, ...]:
    from .conda_solver import solve  # noqa: PLC0415 -- py-rattler, which most requests do not need

    gpu = request.cuda != "cpu"
    virtual = {"__glibc": ".".join(map(str, target.glibc))}
    constraints = []
    if gpu:
        virtual["__cuda"] = request.cuda
        of_cuda = ("cuda-version", "cudatoolkit", "pytorch-cuda")
        constraints += [f"{name} {request.cuda}.*" for name in of_cuda]
    # Without these the solver is glad to take a CPU build where nothing else fits, whoever asks for torch.
    constraints += [f"{name} * {'*cuda*' if gpu else '*cpu*'}" for name in ("pytorch", "libtorch")]
    if request.torch_specifier:
        constraints += [f"{name} {request.torch_specifier}" for name in _TORCH]
    specs = [f"python {request.python}.*", *conda.packages]
    if _names_torch(conda):
        specs.append("numpy")
    return solve(
        specs,
        channels=conda.channels,
        platform=PLATFORMS[target.platform],
        virtual=virtual,
        constraints=constraints,
        as_of=request.as_of,
        keep=kept,
    )


def _names_torch(conda: Conda) -> bool:
    return any(name_of(spec) in _TORCH for spec in conda.packages)


def name_of(spec: str) -> str:
    """Return the package that a match spec names."""
    return re.split(r"[ =<>!~\[]", spec.rpartition("::")[2].strip(), maxsplit=1)[0].lower()


def _check(request: Request, conda: Conda, packages: Sequence[CondaPackage]) -> None:
    """Verify the solution against the request, independently of the solver's input."""
    if not any(p.name == "python" and p.version.startswith(f"{request.python}.") for p in packages):
        raise ResolveError(f"conda: the channels gave no Python {request.python}")
    builds = {p.name: p for p in packages if p.name in ("pytorch", "libtorch")}
    if _names_torch(conda) and not torch_from_conda(packages):
        raise ResolveError(
            "conda: none of the solved packages provides pytorch",
            hint="check what the channel's packages of that name depend on",
        )
    if not builds:
        return
    cudas = {cuda_of_version(p.version) for p in packages if CUDA.fullmatch(p.name)}
    for package in builds.values():
        is_cuda = "cuda" in package.build
        if request.cuda == "cpu" and (is_cuda or cudas):
            raise ResolveError(
                f"conda gave {package.name} {package.version} {package.build}, which is for CUDA "
                f"{', '.join(sorted(cudas))}, and the request is for cpu",
                hint="name pytorch-cpu in the request",
            )
        if request.cuda != "cpu" and not is_cuda:
            raise ResolveError(
                f"conda gave {package.name} {package.version} {package.build}, a CPU build, and the request "
                f"is for CUDA {request.cuda}",
                hint="ask for another version of pytorch, or another CUDA, for which the channel has builds",
            )
    if request.cuda != "cpu" and cudas != {request.cuda}:
        raise ResolveError(
            f"conda gave packages for CUDA {', '.join(sorted(cudas)) or 'of no version'}, not {request.cuda}",
            hint="a package of the request may depend on another CUDA",
        )
