"""Sets in every Python process what no variable of the environment can. Started by ``reprobuild.pth``.

The first import of torch in a process ends with torch's deterministic algorithms on, cuDNN's autotuning off
and TF32 off, and with new memory left as it is unless ``REPROBUILD_FILL`` is 1. With ``REPROBUILD_SEED``
set, torch, ``numpy.random`` and ``random`` are seeded when they are first imported; every process then starts
the same streams, each rank and spawned child too; with ``REPROBUILD_SEED_BY_RANK`` a rank has its own, by the
variable that its launcher set before Python started. What a program sets itself, after its import, wins.
``REPROBUILD_KERNELS`` has kernels.py record or lock the choices that torch.compile makes by timing.
``REPROBUILD_DETERMINISM=off`` turns all of this off.

The `.pth` file reaches plain python, ``-I``, ``-E``, spawned and forked children, the workers of a DataLoader
and torchrun. It does not reach ``python -S``, nor another virtual environment. It lets no bytecode of this
module be written, which `check` could not tell from another's.

An import never fails because of this file: what goes wrong here is a warning on standard error, and the
self-test then refuses the image because its settings are not in effect.

It runs at the start of every Python process, so it imports next to nothing.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # what type checkers take for typing.TYPE_CHECKING; importing typing costs milliseconds
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    Action = Callable[[Any], object]

SWITCH = "REPROBUILD_DETERMINISM"
SEED = "REPROBUILD_SEED"
BY_RANK = "REPROBUILD_SEED_BY_RANK"
RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
"""Of torchrun and what starts ranks as it does, Open MPI, PMIx, MPICH and Intel's MPI, Slurm."""
FILL = "REPROBUILD_FILL"
KERNELS = "REPROBUILD_KERNELS"
KERNELS_PROGRAM = "/opt/reprobuild/kernels.py"


def _torch_settings(torch: Any) -> None:
    """Turn on what makes torch repeat; takes about 50 microseconds."""
    try:
        # The public call also imports Inductor's configuration, which costs 1.25 s at every start, to set
        # what TORCHINDUCTOR_DETERMINISTIC has set already. Its private half is the same in torch 2.4 to 2.13.
        torch._C._set_deterministic_algorithms(True, warn_only=False)  # noqa: FBT003 -- torch's signature
    except (AttributeError, TypeError):
        torch.use_deterministic_algorithms(mode=True)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    try:
        torch.backends.cuda.matmul.fp32_precision  # noqa: B018 -- asks whether it is there
    except (AttributeError, AssertionError):  # torch 2.0 asserts that it knows the name
        # TF32 keeps 10 bits of each factor's mantissa. It repeats on one GPU, but GPUs before Ampere lack it,
        # so that the same program gives other digits there, in either profile. NVIDIA_TF32_OVERRIDE=0 turns
        # it off in the libraries; these make torch say so too. From torch 2.9 on there are two sets of names
        # for it, and a program raises that meets both (pytorch/pytorch#179445): to set either one here would
        # break the programs that use the other, so the variable is left to do it alone.
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_tf32 = False


def _leave_memory(torch: Any) -> None:
    """Do not fill new memory with NaN, which torch does by default with its deterministic algorithms."""
    try:
        # torch.utils.deterministic is not imported yet, and this is all that its property does.
        torch._C._set_deterministic_fill_uninitialized_memory(False)  # noqa: FBT003 -- torch's signature
    except AttributeError:
        return  # torch 2.1 and before never fill it


def _rank(environ: Mapping[str, str]) -> int:
    """Return the number of this process among those of a distributed program; 0 where it is none."""
    if environ.get(BY_RANK) != "1":
        return 0
    given = next((environ[name] for name in RANKS if environ.get(name)), None)
    if given is None:  # Lightning starts the processes of a node with these two
        return int(environ.get("LOCAL_RANK") or 0) + 65536 * int(environ.get("NODE_RANK") or 0)
    return int(given)


def _seeding(text: str, rank: int) -> dict[str, Action]:
    """Return what seeds each module with the number in ``text``. Raises ValueError when it is none."""
    seed = int(text)
    if not 0 <= seed < 2**32:  # the range that NumPy takes
        raise ValueError(f"{seed} is not from 0 to 4294967295")
    # An odd step: no two ranks meet, and neighboring seeds do not share ranks. Rank 0 has the seed itself.
    seed = (seed + rank * 0x9E3779B9) % 2**32
    return {
        "torch": lambda torch: torch.manual_seed(seed),
        # Not "numpy": NumPy 2 imports numpy.random only when it is asked for.
        "numpy.random": lambda random: random.seed(seed),
        "random": lambda random: random.seed(seed),
    }


def _warn(what: str, error: Exception) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"reprobuild: warning: {what}: {type(error).__name__}: {error}\n")


class _Watcher:
    """A finder that finds nothing itself: the others find, and the actions run after the module has run.

    It never removes itself from ``sys.meta_path``, since another thread may be walking over that list.
    """

    def __init__(self) -> None:
        self._actions: dict[str, list[Action]] = {}

    def after(self, name: str, action: Action) -> None:
        """Run ``action`` on a module after its first import, or now if that has been."""
        if name in sys.modules:
            _run(name, action, sys.modules[name])
        else:
            self._actions.setdefault(name, []).append(action)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec that the other finders give, its loader followed by the module's actions."""
        if name not in self._actions:
            return None
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    self._follow(name, spec.loader)
                    return spec
        return None

    def _follow(self, name: str, loader: Any) -> None:
        # An attribute of this one loader, rather than a loader of our own around it: whoever looks at the
        # spec (inspect, pkgutil, a lazy loader) finds the type and the methods that it expects.
        try:
            run = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                if module.__name__ == name:  # some loaders serve many modules
                    # Once a process: a reload keeps what the program has set since.
                    for action in self._actions.pop(name, ()):
                        _run(name, action, module)

            loader.exec_module = exec_module
        except Exception as error:  # noqa: BLE001 -- an import must never fail because of this file
            _warn(f"{name} cannot be watched", error)


def _run(name: str, action: Action, module: ModuleType) -> None:
    try:
        action(module)
    except Exception as error:  # noqa: BLE001 -- an import must never fail because of this file
        _warn(f"{name} is not set up for determinism", error)


def _kernel_choices(how: str, watcher: _Watcher) -> Action:
    """Return what lets kernels be chosen as kernels.py says; where it fails, none is compiled."""

    def action(torch: Any) -> None:
        names: dict[str, Any] = {"__name__": "reprobuild_kernels", "__file__": KERNELS_PROGRAM}
        try:
            with open(KERNELS_PROGRAM, "rb") as file:  # noqa: PTH123 -- pathlib is not imported here
                # Not imported, so that no bytecode is written.
                exec(compile(file.read(), KERNELS_PROGRAM, "exec"), names)  # noqa: S102
            names["install"](how, watcher.after)
        except Exception as error:
            reason = f"{KERNELS}={how}: {type(error).__name__}: {error}"

            def refused(*_: object, **__: object) -> None:
                raise RuntimeError(reason)

            torch.compile = refused
            raise

    return action


def install(environ: Mapping[str, str]) -> None:
    """Watch for the imports, unless the switch says off."""
    if environ.get(SWITCH, "").lower() == "off":
        return
    watcher = _Watcher()
    watcher.after("torch", _torch_settings)
    if environ.get(FILL) != "1":
        watcher.after("torch", _leave_memory)
    if environ.get(KERNELS):
        watcher.after("torch", _kernel_choices(environ[KERNELS], watcher))
    if environ.get(SEED):
        try:
            for name, action in _seeding(environ[SEED], _rank(environ)).items():
                watcher.after(name, action)
        except ValueError as error:
            _warn(f"{SEED} is not used", error)
    sys.meta_path.insert(0, watcher)


try:
    install(os.environ)
except Exception as error:  # noqa: BLE001 -- a Python process must never fail to start because of this file
    _warn("determinism is not set up", error)
