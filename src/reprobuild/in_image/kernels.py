"""Choices of kernels that torch.compile and Triton make by timing: recorded once, then never made anew.

The import hook loads it where ``REPROBUILD_KERNELS`` is set, to one of:

``record:FOLDER``  let choices be made by timing, and keep all of them in FOLDER. Then
                   ``python3 /opt/reprobuild/kernels.py FOLDER > choices.json`` writes what `locked` reads.
``locked``         take the choices of ``/opt/reprobuild/kernels.json`` that were recorded on this kind of
                   machine with this build of torch. What is not there is an error, and is not measured.
``locked:FILE``    the same with the choices of another file.

Inductor keeps what it measured of products in ``cache/HASH``, of other kernels in ``*.best_config``, and
Triton in ``*.autotune.json``, each by a hash of the kernel's source and of what it depends on. Only these go
into a record: the kernels are compiled again from them, by the compilers of the image.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
import sys
import tempfile
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    After = Callable[[str, Callable[[Any], object]], object]

SCHEMA = 1
FILE = "/opt/reprobuild/kernels.json"
CACHES = {"inductor": "TORCHINDUCTOR_CACHE_DIR", "triton": "TRITON_CACHE_DIR"}
DEVICES, NODES = Path("/dev"), ("nvidia[0-9]*", "dxg", "nvmap")
"""Where a GPU's nodes are; WSL and Jetson boards have others."""
UNKNOWN = "a GPU of an unknown model"
SLOWEST = 1e308
"""Milliseconds."""
KIND = "kind.json"
"""The file of a folder of `record` that says where the choices were made."""
CHOICE = re.compile(
    r"inductor/cache/[0-9a-z]+|(?:inductor|triton)/(?:\w[\w.-]*/)+\w[\w.-]*\.(?:best_config|autotune\.json)",
    re.ASCII,
)
"""The path of a file that holds choices, in a record; no part begins with a dot."""


class KernelNotLockedError(Exception):
    """A kernel would be chosen by timing, but choices are locked, and this one is not recorded."""


def install(how: str, after: After) -> None:
    """Prepare torch, which has just been imported; ``after`` runs a function after a module's import."""
    mode, _, place = how.partition(":")
    if mode == "record" and place:
        record(place, after)
    elif mode == "locked":
        Lock(place or FILE).install(after)
    else:
        raise ValueError("REPROBUILD_KERNELS: expected locked, locked:FILE or record:FOLDER")


def kind() -> dict[str, Any]:
    """Return the kind of machine and the build of torch that a choice belongs to. It does not start CUDA."""
    torch: Any = sys.modules["torch"]
    try:
        cpu = torch.backends.cpu.get_cpu_capability()
    except AttributeError:  # torch before 2.1
        cpu = "unknown"
    return {"torch": torch.__version__, "commit": torch.version.git_version, "cpu": cpu, "gpus": gpus()}


def gpus() -> list[str]:
    """Return the names of this machine's NVIDIA GPUs, each once; `UNKNOWN` where there are some without."""
    found = named_by_driver()
    with_cuda = sys.modules["torch"].version.cuda is not None
    if not found and with_cuda and any(list(DEVICES.glob(pattern)) for pattern in NODES):
        return [UNKNOWN]
    return found


def named_by_driver() -> list[str]:
    """Return what the driver's library for management says, or `UNKNOWN` for a GPU that it does not name.

    It need not be there, or may fail.
    """
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return []
    if nvml.nvmlInit_v2():
        return []
    count, names = ctypes.c_uint(), set()
    nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
    for index in range(count.value):
        device, name = ctypes.c_void_p(), ctypes.create_string_buffer(96)
        failed = nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device))
        failed = failed or nvml.nvmlDeviceGetName(device, name, 96)
        names.add(UNKNOWN if failed else name.value.decode("ascii", "replace") or UNKNOWN)
    nvml.nvmlShutdown()
    return sorted(names)


def told(where: dict[str, Any]) -> str:
    """Return a kind in words."""
    return ", ".join([f"torch {where['torch']}", *where["gpus"], f"CPU {where['cpu']}"])


def tuning_on(config: Any) -> None:
    """Let Inductor choose among kernels, which its deterministic mode forbids; torch before 2.9 has none."""
    if hasattr(config, "deterministic"):
        config.deterministic = False


def without_graphs(config: Any) -> None:
    """Compile anew in each process. Of a graph that an earlier one kept, a kernel is tuned without a look at
    ``*.best_config`` (seen with torch 2.11 on an H200), and so its locked choice would be missed.
    """
    if hasattr(config, "fx_graph_cache"):  # torch before 2.2 has none
        config.fx_graph_cache = False


def one_process(config: Any) -> None:
    """Compile in this process, not in a pool of others, once that has started. Of a kernel that the pool has
    compiled, the configuration in ``*.best_config`` can be passed over (seen with torch 2.11 on an H100, in
    one of six containers that started at once), and so its locked choice would be missed.
    """
    config.compile_threads = 1


def caches(folder: Path) -> None:
    """Have both compilers look into a folder."""
    for name, variable in CACHES.items():
        os.environ[variable] = str(folder / name)


# --- record ---


def record(folder: str, after: After) -> None:
    """Let choices be made, and keep the caches of both compilers in a folder."""
    caches(Path(folder))
    write(Path(folder, KIND), json.dumps(kind()))
    after("torch._inductor.config", tuning_on)


def write(path: Path, text: str) -> None:
    """Write a file under its name once it is whole: several processes may write at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=str(path.parent))
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(scratch).chmod(0o644)
    Path(scratch).replace(path)


def packed(folder: str) -> str:
    """Return the choices in a folder of `record` as the text of a file. Raises ValueError, OSError."""
    top = Path(folder)
    files = {file.relative_to(top).as_posix(): file for file in top.rglob("*") if file.is_file()}
    return record_of({path: file.read_text("utf-8") for path, file in files.items() if is_of_record(path)})


def is_of_record(path: str) -> bool:
    """Whether a file of a folder of `record`, by its path in there, goes into a record."""
    return path == KIND or CHOICE.fullmatch(path) is not None


def record_of(texts: dict[str, str]) -> str:
    """Return the record of the files of a folder, by their path. Raises ValueError."""
    try:
        found = {path: json.loads(text) for path, text in texts.items()}
    except RecursionError:
        raise ValueError("a file of choices is nested too deeply") from None
    if KIND not in found:
        raise ValueError("torch was not imported, or the image has no kernels.py")
    where = found.pop(KIND)
    if not found:
        raise ValueError("no kernel was chosen by timing")
    whole = {"schema": SCHEMA, "kind": where, "choices": finite(found)}
    return json.dumps(whole, indent=1, sort_keys=True) + "\n"


def finite(value: Any) -> Any:
    """Return a value with `SLOWEST` for each infinite time, which a kernel that failed has.

    JSON has no such number, and the kernel is not chosen either way.
    """
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [finite(each) for each in value]
    return SLOWEST if value == float("inf") else value


def hold_times(path: str, content: dict[str, Any]) -> None:
    """Raise ValueError unless a compiler can compare all times in a file of choices by which it chooses."""
    try:
        if path.startswith("inductor/cache/"):
            # By operation, shapes, precision (but in torch 2.0) and choice.
            found = [
                time
                for of_inputs in content.get("cache", content).values()
                for times in of_inputs.values()
                for each in times.values()
                for time in (each.values() if isinstance(each, dict) else [each])
            ]
        else:
            rows = [times for _, times in content.get("configs_timings", [])]
            found = [time for times in rows for time in (times if isinstance(times, list) else [times])]
    except (AttributeError, TypeError, ValueError):
        raise ValueError(f"{path!r} is not a file of choices") from None
    for time in found:
        # Neither is NaN.
        if isinstance(time, bool) or not isinstance(time, (int, float)) or not time >= 0:
            raise ValueError(f"{path!r}: {time!r} is not a time")


def records(text: str, where: str) -> list[dict[str, Any]]:
    """Return the records in a file: one, or a list. Raises ValueError that begins with ``where``."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"{where}: not valid JSON") from None
    found = found if isinstance(found, list) else [found]
    for each in found:
        if not isinstance(each, dict) or each.get("schema") != SCHEMA:
            raise ValueError(f"{where}: not a record of kernel choices of schema {SCHEMA}")
        kind_of = each.get("kind")
        if sorted(each) != ["choices", "kind", "schema"] or not isinstance(kind_of, dict):
            raise ValueError(f"{where}: expected the keys schema, kind and choices")
        names = kind_of.pop("gpus", None)
        texts = [*kind_of.values(), *(names if isinstance(names, list) else [None])]
        if sorted(kind_of) != ["commit", "cpu", "torch"] or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"{where}: kind: expected the texts commit, cpu and torch, and the list gpus")
        kind_of["gpus"] = names
        if names != sorted(set(names)):
            raise ValueError(f"{where}: kind.gpus: expected each name once, in alphabetical order")
        if not isinstance(each["choices"], dict) or not each["choices"]:
            raise ValueError(f"{where}: choices: expected a table that is not empty")
        for path, content in each["choices"].items():
            if not CHOICE.fullmatch(path) or not isinstance(content, dict):
                raise ValueError(f"{where}: choices: {path!r} is not a file of choices")
            try:
                hold_times(path, content)
            except ValueError as error:
                raise ValueError(f"{where}: choices: {error}") from None
    return found


# --- locked ---


class Lock:
    """Recorded choices, and what makes torch and Triton take them alone."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.reason = ""

    def install(self, after: After) -> None:
        """Put the choices where both compilers look, and an error where they would measure."""
        # First what refuses: where the rest fails, no kernel is chosen by timing.
        for module, guard in (
            ("torch._inductor.codecache", self.guard_products),
            ("torch._inductor.runtime.benchmarking", self.guard_benchmarks),
            ("torch._inductor.runtime.triton_heuristics", self.guard_heuristics),
            ("torch._inductor.autotune_process", self.guard_processes),
            ("triton.runtime.autotuner", self.guard_triton),
        ):
            after(module, self.surely(guard))
        try:
            self.put(self.mine())
        except (ValueError, OSError) as error:
            self.reason = str(error)
            caches(Path(tempfile.mkdtemp(prefix="reprobuild-kernels-")))  # not those of an earlier run
        after("torch._inductor.config", tuning_on)
        after("torch._inductor.config", without_graphs)
        after("torch._inductor.config", one_process)

    def surely(self, guard: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return a guard that lets nothing be compiled where it does not fit this version."""

        def guarded(module: Any) -> None:
            try:
                guard(module)
            except Exception as error:
                self.reason = f"{module.__name__} of this version is not known: {error!r}"
                torch: Any = sys.modules["torch"]
                torch.compile = self.refusing("a kernel")
                raise

        return guarded

    def mine(self) -> dict[str, Any]:
        """Return the choices of this kind of machine. Raises ValueError, OSError."""
        found = records(Path(self.file).read_text("utf-8"), self.file)
        here = kind()
        if UNKNOWN in here["gpus"]:
            raise ValueError(
                "the driver does not name this machine's GPU: libnvidia-ml.so.1 is missing or fails "
                "(NVIDIA_DRIVER_CAPABILITIES=compute,utility hands it in)"
            )
        for each in found:
            if each["kind"] == here:
                choices: dict[str, Any] = each["choices"]
                return choices
        others = "; ".join(told(each["kind"]) for each in found) or "no kind"
        raise ValueError(f"none is recorded for this kind, {told(here)}, but for {others}")

    def put(self, choices: dict[str, Any]) -> None:
        """Write the choices into caches of their own, which hold nothing else that was ever measured."""
        texts = {path: json.dumps(content, sort_keys=True) for path, content in choices.items()}
        digest = hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()[:16]
        folder = Path(tempfile.gettempdir(), f"reprobuild-kernels-{os.getuid()}-{digest}")
        try:
            folder.mkdir(0o700)
        except FileExistsError:
            state = folder.lstat()
            if folder.is_symlink() or state.st_uid != os.getuid() or state.st_mode & 0o022:
                raise ValueError(f"{folder} is another user's: remove it") from None
        for path, text in texts.items():
            if not (folder / path).exists():
                write(folder / path, text)
        caches(folder)

    def refuse(self, what: str) -> None:
        """Raise the error of a miss."""
        raise KernelNotLockedError(
            f"kernel choices are locked, and {what} would be chosen by timing: "
            + (self.reason or f"{self.file} does not have it")
            + ". Record the program anew, with `reprobuild run --record-kernels FILE IMAGE`, and name the "
            "FILE in the request's determinism.kernel-choices"
        )

    def refusing(self, what: str) -> Callable[..., Any]:
        """Return a function that raises the error of a miss, whatever it is given."""

        def refused(*_: Any, **__: Any) -> None:
            self.refuse(what)

        return refused

    def replace(self, owner: Any, names: Sequence[str], what: str) -> None:
        """Put the error in the place of functions; Inductor's modules differ from version to version."""
        for name in names:
            if callable(vars(owner).get(name)):
                setattr(owner, name, self.refusing(what))

    def guard_products(self, module: Any) -> None:
        """Guard Inductor's choice among kernels for a product, a convolution, an attention."""
        inner = module.PersistentCache.lookup

        def lookup(
            cache: Any, choices: Any, op: str, inputs: str, benchmark: Any, *more: Any, **named: Any
        ) -> Any:
            # It measures only what it does not find in the file.
            measure = None if benchmark is None else self.refusing(f"{op} of {inputs}")
            return inner(cache, choices, op, inputs, measure, *more, **named)

        module.PersistentCache.lookup = lookup

    def guard_benchmarks(self, module: Any) -> None:
        """Guard every measurement that Inductor makes."""
        for owner in [*vars(module).values()]:
            if isinstance(owner, type) and owner.__module__ == module.__name__:
                names = [name for name in vars(owner) if name.startswith("benchmark")]
                self.replace(owner, names, "a kernel")

    def guard_heuristics(self, module: Any) -> None:
        """Guard Inductor's choice of a Triton kernel's configuration."""
        self.measured(module.CachingAutotuner, "benchmark_all_configs", "fn")

    def guard_processes(self, module: Any) -> None:
        """Guard measurements in processes of their own, whose errors would count as a slow kernel."""
        self.replace(module, ("benchmark_in_sub_process", "run_autotune_in_subprocess"), "a kernel")
        for name in ("TuningProcessPool", "AsyncAutotuner"):
            if hasattr(module, name):
                self.replace(getattr(module, name), ("benchmark", "start"), "a kernel")

    def guard_triton(self, module: Any) -> None:
        """Guard the choice of ``@triton.autotune``."""
        self.measured(module.Autotuner, "_bench", "base_fn")

    def measured(self, owner: Any, method: str, kernel: str) -> None:
        """Put the error in the place of a method, with the name of the kernel that the object has."""
        if not callable(getattr(owner, method)):
            raise TypeError(f"{owner.__name__}.{method} is not a method")

        def refused(tuner: Any, *_: Any, **__: Any) -> None:
            self.refuse(f"a configuration of {getattr(getattr(tuner, kernel, None), '__name__', 'a kernel')}")

        setattr(owner, method, refused)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python3 kernels.py FOLDER > choices.json")
    try:
        sys.stdout.write(packed(sys.argv[1]))
    except (OSError, ValueError) as problem:
        sys.exit(f"kernels.py: {sys.argv[1]}: {problem}")
