"""Build a source archive in the sandbox of the self-test; no code of a package runs on the host.

The program `program` does it there, by the root's own Python: no network, no capability, everything read-only
but one folder in memory, one processor, a fixed time stamp, locale and hash seed, limits of memory,
processes, time and output.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from ..errors import BuildError, HostError
from ..fetch.store import Store
from ..host import process, sandbox, untrusted_files
from ..host.home import storage_errors
from ..host.own_program import own_program
from ..lock.packages import PythonPackage
from .failures import UNEXPLAINED, Setting, advice, last_lines
from .normalize_wheel import normalise
from .setup_py import read_script
from .source_archive import BuildSystem, told

SECONDS = "REPROBUILD_BUILD_SECONDS"
"""The variable that sets how long one build of a source package may take."""

MOST_SECONDS = 3600.0
FOLDER_BYTES = 8 << 30
"""What a build may write, in memory; less where the machine's memory is."""

LARGEST_WHEEL = 4 << 30
"""Bytes of a file that a build writes."""

LARGEST_METADATA = 16 << 20
"""Bytes of a file METADATA."""

MOST_OUTPUT = 64 << 20
"""Bytes that a build may print."""

EPOCH = 315532800
"""1980-01-01, the oldest time that a zip file can hold: what a build takes for the time of its sources."""

FOLDER = "/build"
_MNT = "/mnt"
_ONE_PROCESSOR = b"0\n"
_PROCESSORS = ("online", "possible", "present")
"""Below /sys/devices/system/cpu: what the C library, and so os.cpu_count, counts."""

_PATH = "/usr/local/bin:/usr/bin:/bin"
ENVIRONMENT = {
    "PATH": f"{FOLDER}/env/bin:{_PATH}",
    "HOME": f"{FOLDER}/home",
    "TMPDIR": f"{FOLDER}/tmp",  # noqa: S108 -- in the sandbox
    "VIRTUAL_ENV": f"{FOLDER}/env",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "SOURCE_DATE_EPOCH": str(EPOCH),
    "MAX_JOBS": "1",
    "CMAKE_BUILD_PARALLEL_LEVEL": "1",
    "PIP_NO_INDEX": "1",
}
STANDALONE_ENVIRONMENT = {
    "CC": "cc",
    "CXX": "c++",
    "AR": "ar",
    "LDSHARED": "cc -shared",
    "LDCXXSHARED": "c++ -shared",
}
"""With a standalone Python, which else asks for the compiler that it was itself built with."""

CUDA_HOME = f"{FOLDER}/cuda"


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """One package to build; its files are in the store."""

    name: str
    """Normalised."""
    version: str | None
    """None if only the build determines it."""
    filename: str
    """Of the source archive."""
    sha256: str
    system: BuildSystem
    wheels: Sequence[PythonPackage]
    """The build requirements, pip among them."""
    asked: tuple[str, ...] = ()
    """Those that the backend asked for, beside what the archive names."""
    env: Mapping[str, str] = field(default_factory=dict)
    subdirectory: str = ""
    cuda: bool = False
    """Whether nvcc is among the wheels, and is laid out as CUDA_HOME."""

    @property
    def title(self) -> str:
        """The package as messages name it."""
        return self.name if self.version is None else f"{self.name} {self.version}"


def environment(recipe: Recipe, *, is_standalone: bool) -> Mapping[str, str]:
    """Return the variables of a build, by a standalone Python or another one."""
    found = {**ENVIRONMENT, **(STANDALONE_ENVIRONMENT if is_standalone else {})}
    if recipe.cuda:
        # Else nvcc names its intermediate files by its process number, and with them symbols of the result.
        found["NVCC_APPEND_FLAGS"] = "--objdir-as-tempdir"
        found |= {"CUDA_HOME": CUDA_HOME, "PATH": f"{FOLDER}/env/bin:{CUDA_HOME}/bin:{_PATH}"}
    return {**found, **recipe.env}


@dataclass(frozen=True, slots=True)
class BuildRoot:
    """The system in which builds run: unpacked layers, the lowest first, and the Python in them."""

    layers: Sequence[Path]
    interpreter: str
    python: str
    """Its minor version, ``3.11``."""
    is_standalone: bool = False
    cuda: str = "cpu"
    """Of the request."""
    debian: frozenset[str] = frozenset()
    """Names of its Debian packages."""


class MoreRequiredError(Exception):
    """A backend asks for requirements that are not installed."""

    def __init__(self, requirements: Sequence[str]) -> None:
        super().__init__(", ".join(requirements))
        self.requirements = tuple(requirements)


def build(
    recipe: Recipe, root: BuildRoot, store: Store, scratch: Path, *, ask: bool = False, second: bool = False
) -> Path:
    """Build a wheel; return it in its one form (`normalize_wheel`), named as wheels are, below ``scratch``.

    With ``ask`` the backend may ask for more requirements: then `MoreRequiredError` is raised. ``second``
    begins from another state. Raises `BuildError` that names the package and the cause, `HostError` where
    this machine cannot run a sandbox.
    """
    outcome = _run(recipe, root, store, scratch, ask=ask, second=second)
    filename = outcome.get("wheel")
    try:
        name, version, _, _ = parse_wheel_filename(str(filename))
    except InvalidWheelFilename:
        raise BuildError(f"{recipe.title}: its build made {filename!a}, which is not a wheel") from None
    if canonicalize_name(name) != recipe.name or (recipe.version and version != Version(recipe.version)):
        raise BuildError(
            f"{recipe.title}: its build made a wheel of {name} {version}",
            hint="the index has this archive under a name that is not its own; ask for another version",
        )
    with storage_errors(scratch), untrusted_files.opened(scratch, "out") as _:
        target = scratch / str(filename)
        normalise(scratch / "out", recipe.title, target)
    return target


def prepare(recipe: Recipe, root: BuildRoot, store: Store, scratch: Path) -> bytes | None:
    """Return the metadata of the wheel that a build would make; None where only a build tells it.

    Nothing has held them against the package's name. Raises as `build` with ``ask``.
    """
    outcome = _run(recipe, root, store, scratch, ask=True, second=False, metadata=True)
    if outcome.get("metadata") is None:
        return None
    with untrusted_files.opened(scratch, "out") as file:
        found = file.read(LARGEST_METADATA + 1)
    if len(found) > LARGEST_METADATA:
        raise BuildError(f"{recipe.title}: its metadata is larger than {LARGEST_METADATA >> 20} MiB")
    return found


def _run(
    recipe: Recipe,
    root: BuildRoot,
    store: Store,
    scratch: Path,
    *,
    ask: bool,
    second: bool,
    metadata: bool = False,
) -> dict[str, Any]:
    with storage_errors(scratch):
        (scratch / "program.py").write_bytes(own_program("build_wheel.py").read_bytes())
        (scratch / "processors").write_bytes(_ONE_PROCESSOR)
        (scratch / "out").write_bytes(b"")
        bundle = scratch / "bundle"
        bundle.mkdir()
    archive = f"{_MNT}/source/{recipe.filename}"
    inside = {package.wheel.filename: package for package in recipe.wheels}
    pip = next(f"{_MNT}/wheels/{each.wheel.filename}" for each in recipe.wheels if each.name == "pip")
    told = {
        "asked": list(recipe.asked) if ask else None,
        "archive": archive,
        # pip installs the others, and is not one of them.
        "wheels": [f"{_MNT}/wheels/{name}" for name in sorted(inside) if inside[name].name != "pip"],
        "pip": pip,
        "backend": recipe.system.backend,
        "backend_path": list(recipe.system.backend_path),
        "subdirectory": recipe.subdirectory,
        "cuda": CUDA_HOME if recipe.cuda else None,
        "folder": FOLDER,
        "out": f"{_MNT}/out",
        "metadata": metadata,
        "epoch": EPOCH,
        "second": second,
    }
    binds = [
        sandbox.Bind(source=scratch / "program.py", destination=f"{_MNT}/program.py"),
        sandbox.Bind(source=store.path(recipe.sha256), destination=archive),
        *(
            sandbox.Bind(source=store.path(package.wheel.sha256), destination=f"{_MNT}/wheels/{name}")
            for name, package in sorted(inside.items())
        ),
        sandbox.Bind(source=scratch / "out", destination=f"{_MNT}/out", writable=True),
        *(
            sandbox.Bind(source=scratch / "processors", destination=f"/sys/devices/system/cpu/{name}")
            for name in _PROCESSORS
        ),
    ]
    started = sandbox.Task(
        argv=[root.interpreter, "-I", "-S", "-B", f"{_MNT}/program.py", json.dumps(told)],
        env=environment(recipe, is_standalone=root.is_standalone),
        cwd="/",
        binds=binds,
        folders={FOLDER: (f"size={FOLDER_BYTES}",)},
    )
    limit = seconds()
    try:
        done = sandbox.run(
            bundle,
            root.layers,
            started,
            timeout=limit,
            largest_file=LARGEST_WHEEL,
            most_output=MOST_OUTPUT,
        )
    except process.ProcessTimeout as stopped:
        raise BuildError(
            f"{recipe.title}: its build did not end within {stopped.seconds:g} s",
            hint=f"set {SECONDS} higher if the build needs longer, or publish a wheel to your own index",
        ) from None
    except process.LimitReached as stopped:
        raise BuildError(
            f"{recipe.title}: its build was stopped: {stopped.reason}", hint=stopped.hint
        ) from None
    try:
        outcome = json.loads(done.stdout)
    except (ValueError, RecursionError):  # a build can write there too
        outcome = None
    if done.returncode != 0 or not isinstance(outcome, dict) or "failed" in outcome:
        failed = str(outcome.get("failed")) if isinstance(outcome, dict) else "backend"
        raise _failure(recipe, root, store.path(recipe.sha256), failed, done.stderr)
    if "requires" in outcome:
        found = outcome["requires"]
        if not ask or not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise BuildError(f"{recipe.title}: its build backend gave no list of requirements")
        raise MoreRequiredError(found)
    return outcome


class BuildFailedError(BuildError):
    """A failed build of a source package; ``said`` is the end of its output."""

    @property
    def is_explained(self) -> bool:
        """Whether the hint says what the build lacks."""
        return self.hint != UNEXPLAINED

    def __init__(self, message: str, *, hint: str, said: str) -> None:
        super().__init__(message, hint=hint)
        self.said = said


_STEPS = {
    "install": "its build requirements could not be installed",
    "unpack": "its source archive could not be unpacked",
    "backend": "it could not be built",
}


def _failure(recipe: Recipe, root: BuildRoot, archive: Path, step: str, stderr: bytes) -> BuildFailedError:
    whole = stderr.decode("utf-8", "replace")
    said = last_lines(whole) or "the build printed nothing"
    message = f"{recipe.title}: {_STEPS.get(step, _STEPS['backend'])}:\n{said}"
    source = told(archive, recipe.filename, subdirectory=recipe.subdirectory)
    setting = Setting(
        name=recipe.name,
        headers="" if root.is_standalone else f"python{root.python}-dev",
        cuda=root.cuda,
        debian=root.debian,
        has_nvcc=recipe.cuda,
        installed=frozenset(each.name for each in recipe.wheels),
        modules=source.modules,
        script=read_script(source.setup_py),
    )
    return BuildFailedError(message, hint=advice(whole, setting), said=whole[-_KEPT:])


_KEPT = 1 << 20


def seconds(env: Mapping[str, str] = os.environ) -> float:
    """Return the time limit of one build. Raises `HostError` if the variable is not a number."""
    text = env.get(SECONDS, "").strip()
    if not text:
        return MOST_SECONDS
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text):
        raise HostError(f"{SECONDS}: {text!r} is not a number of seconds", hint="write it as 7200")
    return float(text)
