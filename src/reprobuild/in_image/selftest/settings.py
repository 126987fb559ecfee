"""The settings that have to be in effect."""

from __future__ import annotations

import importlib
import json
import os
import random
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .exact import must_be, numbers
from .flags import AT_START, version
from .libraries import np, torch
from .location import locked
from .machine import cpu_capability
from .names import FORBIDDEN
from .operations import conv2d
from .outcomes import Failed, NotRun, Results, note
from .registry import BOTH, SETTING, check
from .training import train


@check(SETTING, order=0)
def imports(_: str) -> Results:
    """torch and numpy can be imported."""
    importlib.import_module("numpy")
    importlib.import_module("torch")
    return None


@check(SETTING, order=5)
def setting_hook(_: str) -> Results:
    """The import hook is in effect, which sets in each process what no variable can."""
    if "REPROBUILD_PROFILE" not in os.environ:
        raise NotRun("REPROBUILD_PROFILE is not set: reprobuild did not build this environment")
    if os.environ.get("REPROBUILD_DETERMINISM", "").lower() == "off":
        raise Failed("the import hook is turned off: REPROBUILD_DETERMINISM is off")
    if sys.modules.get("reprobuild_hook"):
        return None
    folder = Path(sysconfig.get_path("purelib"))
    for name in ("reprobuild.pth", "reprobuild_hook.py"):
        if not (folder / name).exists():
            raise Failed(f"the import hook is gone: {name} is not in {folder}")
    raise Failed(f"the import hook is gone: {folder}/reprobuild.pth does not import it")


STARTS = 8
"""How many processes show their variables, to each interpreter: what is drawn at a start is then seen."""

START = "REPROBUILD_SELFTEST_START"
"""Variable with the words by which the image's entry point starts Python, as a list in JSON."""

SHOW = "import json, os, sys; print(json.dumps([sys.prefix, dict(os.environ)]))"


@check(SETTING, order=7)
def setting_environment(_: str) -> Results:
    """Each process, started as a user would, sees the variables of the lock, and is of this environment."""
    # Any fixed choice of NCCL's repeats; a run may need another than ours.
    baked: dict[str, str] = locked()["variables"]
    expected = {n: os.environ.get(n, v) if n.startswith("NCCL_") else v for n, v in baked.items()}
    if shutil.which("python3") is None:
        raise Failed("there is no python3 on PATH")

    ways: list[list[str]] = [["python3"], *([json.loads(os.environ[START])] if START in os.environ else [])]

    def start(number: int) -> tuple[str, str, dict[str, str]]:
        way = ways[number % len(ways)]
        said = " ".join(way)
        # Not with the variables of this process: they are what the first start has made of them.
        env = {n: v for n, v in {**os.environ, **expected}.items() if n != START}
        command = [*way, "-c", SHOW]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise Failed(f"{said} -c … ended with status {done.returncode}: {done.stderr[-500:]}")
        prefix, seen = json.loads(done.stdout)
        return said, prefix, seen

    with ThreadPoolExecutor(2) as pool:
        started = [(sys.executable, sys.prefix, dict(os.environ)), *pool.map(start, range(STARTS))]
    wrong: dict[str, dict[str, str]] = {}
    for said, prefix, seen in started:
        if prefix != sys.prefix:
            raise Failed(f"{said} is that of {prefix}, not of {sys.prefix}")
        for name, value in expected.items():
            if (got := seen.get(name, "not set")) != value:
                wrong.setdefault(name, {"what": name, "expected": value, "got": got})
    if wrong:
        raise Failed(f"not as locked in each process: {', '.join(wrong)}", list(wrong.values()))
    return None


@check(SETTING, order=10, hooked=True)
def setting_seed(_: str) -> Results:
    """The seed of the request reaches torch, NumPy and random at the start of a process."""
    text = os.environ.get("REPROBUILD_SEED")
    if not text:
        raise NotRun("no seed is baked in: REPROBUILD_SEED is not set")
    # The first of the checks that could draw a number, so the states are those of the start.
    must_be("torch.initial_seed()", got=torch.initial_seed(), expected=int(text))
    seeded = random.getstate() == random.Random(int(text)).getstate()  # noqa: S311 -- no secret
    must_be("random is in the state that the seed gives", got=seeded, expected=True)
    states: list[Any] = [np.random.get_state(), np.random.RandomState(int(text)).get_state()]
    state, expected = (each[1] for each in states)
    must_be(
        "numpy.random is in the state that the seed gives", got=bool((state == expected).all()), expected=True
    )
    return None


@check(SETTING, order=100, hooked=True)
def setting_deterministic(_: str) -> Results:
    """Deterministic algorithms are on in torch, and what has none raises rather than warns."""
    on = torch.are_deterministic_algorithms_enabled()
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    must_be("torch.are_deterministic_algorithms_enabled()", got=on, expected=True)
    must_be("torch.is_deterministic_algorithms_warn_only_enabled()", got=warns, expected=False)
    return None


@check(SETTING, order=105, hooked=True)
def setting_cudnn(_: str) -> Results:
    """cuDNN takes deterministic algorithms, and does not choose them by a race."""
    must_be("torch.backends.cudnn.deterministic", got=torch.backends.cudnn.deterministic, expected=True)
    must_be("torch.backends.cudnn.benchmark", got=torch.backends.cudnn.benchmark, expected=False)
    return None


@check(SETTING, order=102, hooked=True)
def setting_fill(_: str) -> Results:
    """Programs find new memory filled or not, as the request says; the self-test itself fills it."""
    if "fill" not in AT_START:
        raise NotRun("torch 2.1 and older do not fill new memory")
    expected = os.environ.get("REPROBUILD_FILL") == "1"
    must_be("fill_uninitialized_memory at the start", got=AT_START["fill"], expected=expected)
    return None


@check(SETTING, order=110, hooked=True)
def setting_tf32(_: str) -> Results:
    """float32 products keep all their bits: TF32 is off in cuBLAS and cuDNN."""
    must_be("NVIDIA_TF32_OVERRIDE", got=os.environ.get("NVIDIA_TF32_OVERRIDE", "not set"), expected="0")
    must_be("TRITON_F32_DEFAULT", got=os.environ.get("TRITON_F32_DEFAULT", "not set"), expected="ieee")
    matmul = torch.backends.cuda.matmul
    try:
        got = matmul.fp32_precision
    except (AttributeError, AssertionError):  # torch 2.0 asserts that it knows the name
        got = None
    if got is not None:
        # torch 2.9 and later: the hook leaves both sets of names alone, and reading the old ones raises where
        # a program has used the new. cuDNN's is "tf32" by default, which the variable overrules.
        must_be("torch.backends.cuda.matmul.fp32_precision is tf32", got=got == "tf32", expected=False)
        return None
    for what, backend in (("cudnn", torch.backends.cudnn), ("cuda.matmul", matmul)):
        must_be(f"torch.backends.{what}.allow_tf32", got=backend.allow_tf32, expected=False)
    return None


@check(SETTING, devices=BOTH, order=115)
def precision(device: str) -> Results:
    """float32 products and convolutions have the precision of float32, by comparison with float64."""
    # Rounding the factors to TF32's 10 bits gives 3e-4 here, to bfloat16 3e-3; float32 itself at most 1e-6.
    for what, function, shape in (
        ("matmul", torch.matmul, (256, 256)),
        ("conv2d", torch.nn.functional.conv2d, (16, 16, 9, 9)),
    ):
        a, b = (numbers(*shape, salt=salt, dtype="float64") for salt in (1, 2))
        exact = function(a, b)
        got = function(a.float().to(device), b.float().to(device)).cpu().double()
        error = ((got - exact).norm() / exact.norm()).item()
        if error > 3e-5:
            detail = {"what": f"relative error of {what}", "expected": "below 3e-05", "got": f"{error:.3g}"}
            raise Failed(f"{what} in float32 is not precise: TF32 or bfloat16 is in use", [detail])
    return None


@check(SETTING, order=120)
def setting_threads(_: str) -> Results:
    """The number of threads is fixed, and is the one in effect (more than the cores are not given)."""
    text = os.environ.get("OMP_NUM_THREADS", "")
    if not text.isdecimal():
        raise Failed("OMP_NUM_THREADS is not set: results depend on the number of cores")
    for name in ("MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        must_be(name, got=os.environ.get(name, "not set"), expected=text)
    for name in ("OMP_DYNAMIC", "MKL_DYNAMIC"):
        must_be(name, got=os.environ.get(name, "").upper(), expected="FALSE")
    must_be("torch.get_num_threads()", got=torch.get_num_threads(), expected=int(text))
    return None


@check(SETTING, order=125)
def setting_hash_seed(_: str) -> Results:
    """The hash seed of Python is fixed."""
    if not os.environ.get("PYTHONHASHSEED", "").isdecimal():
        raise Failed("PYTHONHASHSEED is not set to a number: the order of sets changes with every process")
    must_be("sys.flags.ignore_environment", got=sys.flags.ignore_environment, expected=0)
    return None


@check(SETTING, order=130)
def setting_cublas_workspace(_: str) -> Results:
    """cuBLAS has a workspace of a fixed size (torch up to 2.9 refuses to run without)."""
    got = os.environ.get("CUBLAS_WORKSPACE_CONFIG", "not set")
    must_be("CUBLAS_WORKSPACE_CONFIG", got=got, expected=":16:8" if got == ":16:8" else ":4096:8")
    return None


@check(SETTING, devices=("cuda",), order=135)
def cublas_refuses(_: str) -> Results:
    """torch refuses a product on the GPU when cuBLAS has no fixed workspace."""
    if version() >= (2, 10):  # pytorch/pytorch#161749
        raise NotRun("torch 2.10 and later run without a fixed workspace; see setting-cublas-workspace")
    code = (
        "import torch; torch.use_deterministic_algorithms(True);"
        "a = torch.ones(64, 64, device='cuda'); print((a @ a).cpu())"
    )
    env = {name: value for name, value in os.environ.items() if name != "CUBLAS_WORKSPACE_CONFIG"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode == 0:
        raise Failed("a product without CUBLAS_WORKSPACE_CONFIG gave a result: the flag is not enforced")
    if "CUBLAS_WORKSPACE_CONFIG" not in done.stderr:
        raise RuntimeError(done.stderr)
    return None


def numpy_kernels() -> list[str]:
    """Return the CPU features by which NumPy chooses kernels here, beyond those that it always needs."""
    name = "numpy._core._multiarray_umath" if hasattr(np, "_core") else "numpy.core._multiarray_umath"
    module = importlib.import_module(name)
    features = module.__cpu_features__
    return [feature for feature in module.__cpu_dispatch__ if features.get(feature)]


@check(SETTING, order=140)
def setting_profile(_: str) -> Results:
    """The variables of the other libraries that change numbers are set as the profile says."""
    expected = {"TORCHINDUCTOR_DETERMINISTIC": "1"}
    for name in ("NCCL_ALGO", "NCCL_PROTO"):  # any fixed choice repeats; a run may need another than ours
        must_be(f"{name} is set", got=bool(os.environ.get(name)), expected=True)
    if os.environ.get("REPROBUILD_PROFILE") == "portable":
        expected["MKL_CBWR"], expected["OPENBLAS_CORETYPE"] = "COMPATIBLE", "Haswell"
        expected["ATEN_CPU_CAPABILITY"], expected["ONEDNN_MAX_CPU_ISA"] = "avx2", "AVX2"
        must_be("NumPy's kernels chosen by CPU", got=numpy_kernels(), expected=[])
        must_be("torch's CPU capability", got=cpu_capability(), expected="AVX2")
    else:
        expected["MKL_CBWR"] = "AUTO"
    for name, value in expected.items():
        must_be(name, got=os.environ.get(name, "not set"), expected=value)
    return None


@check(SETTING, order=142, hooked=True)
def setting_kernels(_: str) -> Results:
    """Where choices of kernels are locked, torch.compile can measure none."""
    how = os.environ.get("REPROBUILD_KERNELS", "")
    if not how.startswith("locked"):
        raise NotRun("no choices of kernels are locked: the request has no kernels")
    try:
        torch._dynamo.reset()  # imports what the choices belong to
        benchmarking = importlib.import_module("torch._inductor.runtime.benchmarking")
        benchmarking.Benchmarker().benchmark_cpu(lambda: None)
    except ImportError:
        raise NotRun("this torch is too old: it measures elsewhere") from None
    except Exception as error:
        if type(error).__name__ != "KernelNotLockedError":
            raise
        note(str(error).partition(". ")[0])
        return None
    raise Failed("torch.compile measures kernels, although their choices are locked")


@check(SETTING, order=145)
def setting_forbidden(_: str) -> Results:
    """No variable is set that changes an algorithm or its numbers."""
    found = [name for name in FORBIDDEN if name in os.environ]
    if found:
        lines = [{"what": name, "expected": "not set", "got": os.environ[name]} for name in found]
        raise Failed(f"set: {', '.join(found)}", lines)
    return None


@check(SETTING, devices=BOTH, order=150, hooked=True)
def setting_kept(device: str) -> Results:
    """A convolution and a step of training leave the settings as they were, and as they have to be."""

    def state() -> tuple[object, ...]:
        cudnn = torch.backends.cudnn
        flags = torch.are_deterministic_algorithms_enabled(), cudnn.deterministic, cudnn.benchmark
        return *flags, torch.get_num_threads(), torch.get_float32_matmul_precision()

    before = state()
    conv2d(device)
    train(device, "SGD", {"lr": 0.1}, steps=1)
    must_be("flag, cuDNN's flags, threads, precision", got=state(), expected=before)
    # A convolution before this one may have changed them already.
    wanted = {"deterministic algorithms": True, "cudnn.deterministic": True, "cudnn.benchmark": False}
    for (what, expected), got in zip(wanted.items(), before):
        must_be(f"{what} after a convolution", got=got, expected=expected)
    return None
