"""Breaks, in one interpreter with torch, what each check guards, and prints what the check then says.

    python sabotage.py SELFTEST.PY FOLDER   # a copy of the program that may have files put beside it; scratch

Output: JSON, an object {"CHECK: HOW": [status, reason]}, and "clean: CHECK" for each check left alone. One
interpreter for all of them, since an import of torch costs seconds.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib.util
import itertools
import json
import mmap
import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

PROGRAM, FOLDER = Path(sys.argv[1]), Path(sys.argv[2])
spec = importlib.util.spec_from_file_location("selftest", PROGRAM)
assert spec
assert spec.loader
selftest: Any = importlib.util.module_from_spec(spec)
sys.modules["selftest"] = selftest
spec.loader.exec_module(selftest)
torch: Any = importlib.import_module("torch")
importlib.import_module("torch.nn.attention.flex_attention")

OPERATIONS = {
    "conv1d": "torch.nn.functional.conv1d",
    "conv2d": "torch.nn.functional.conv2d",
    "conv3d": "torch.nn.functional.conv3d",
    "conv-transposed": "torch.nn.functional.conv_transpose2d",
    "depthwise-batchnorm": "torch.nn.functional.batch_norm",
    "matmul": "torch.matmul",
    "bmm": "torch.baddbmm",
    "bmm-sparse": "torch.bmm",
    "index-add": "torch.Tensor.index_add",
    "scatter-add": "torch.Tensor.scatter_add",
    "index-put": "torch.Tensor.index_put",
    "embedding": "torch.nn.functional.embedding",
    "lstm": "torch._VF.lstm",
    "gru": "torch._VF.gru",
    "layer-norm": "torch.nn.functional.layer_norm",
    "softmax": "torch.softmax",
    "sums": "torch.Tensor.sum",
    "attention": "torch.nn.functional.scaled_dot_product_attention",
    "svd-lowrank": "torch.svd_lowrank",
    "decompositions": "torch.linalg.eigh",
    "fft": "torch.fft.rfft",
    "elementwise": "torch.log",
    "batches": "torch.nn.functional.linear",
    "train-sgd": "torch.nn.functional.cross_entropy",
    "train-momentum": "torch.nn.functional.cross_entropy",
    "train-adamw": "torch.nn.functional.cross_entropy",
    "torch-seed": "torch.rand",
    "dataloader": "torch.rand",
}
"""The operation of each check that compares within a process; it is made to differ in the last bit."""


@contextlib.contextmanager
def drifting(path: str) -> Iterator[None]:
    """Let each call of a function give other numbers than the last, by one unit in the last place each."""
    owner, name = path.rsplit(".", 1)
    holder: Any = torch
    for part in owner.split(".")[1:]:
        holder = getattr(holder, part)
    real, calls = getattr(holder, name), itertools.count()

    def shift(value: Any) -> Any:
        if isinstance(value, tuple):
            return (shift(value[0]), *value[1:])
        with torch.no_grad():
            real_part = torch.view_as_real(value) if value.is_complex() else value
            moved = real_part.detach().clone()
            for _ in range(next(calls)):
                moved = torch.nextafter(moved, torch.full_like(moved, 9e9))
            moved = moved - real_part
        return value + (torch.view_as_complex(moved) if value.is_complex() else moved)

    with mock.patch.object(holder, name, lambda *a, **k: shift(real(*a, **k))):
        yield


@contextlib.contextmanager
def variable(name: str, value: str | None) -> Iterator[None]:
    """Set a variable of the environment, or take it away."""
    with mock.patch.dict(os.environ, {name: value or ""}):
        if value is None:
            del os.environ[name]
        yield


@contextlib.contextmanager
def call(change: Callable[[], object], back: Callable[[], object]) -> Iterator[None]:
    """Change a setting for a while."""
    change()
    try:
        yield
    finally:
        back()


def flag(holder: Any, name: str, value: object) -> Any:
    """Set a flag of torch for a while."""
    before = getattr(holder, name)
    return call(lambda: setattr(holder, name, value), lambda: setattr(holder, name, before))


@contextlib.contextmanager
def two_libraries() -> Iterator[None]:
    """Map two files that are called like one CUDA library into this process."""
    with contextlib.ExitStack() as stack:
        for folder in ("a", "b"):
            path = FOLDER / folder / "libcudart.so.12"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"x" * 4096)
            opened = stack.enter_context(path.open("rb"))
            stack.enter_context(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
        yield


@contextlib.contextmanager
def stray_library() -> Iterator[None]:
    """Load a library that is called like one of CUDA's from a folder that is not the environment's."""
    path = FOLDER / "other" / "libcudnn.so.9"
    path.parent.mkdir(exist_ok=True)
    spec = importlib.util.find_spec("_bz2")
    assert spec
    assert spec.origin
    shutil.copy(spec.origin, path)
    ctypes.CDLL(str(path))
    yield


@contextlib.contextmanager
def package_that_flushes() -> Iterator[None]:
    """Let there be a package whose import sets the processor as a library built with -ffast-math does."""
    (FOLDER / "flushing.py").write_text(FLUSHING)
    with (
        mock.patch.object(selftest, "compiled_packages", return_value=["json", "flushing", "csv"]),
        variable("PYTHONPATH", str(FOLDER)),
    ):
        yield


FLUSHING = """
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("0fae17c3"))  # ldmxcsr [rdi]; ret
run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
run(ctypes.addressof(ctypes.c_uint32(0x9FC0)))  # flush to zero, denormals are zero
"""


@contextlib.contextmanager
def rarely(path: str, rate: float) -> Iterator[None]:
    """Let a function be off by one unit in the last place in a share of its calls."""
    owner, name = path.rsplit(".", 1)
    holder: Any = torch
    for part in owner.split(".")[1:]:
        holder = getattr(holder, part)
    real, luck = getattr(holder, name), random.Random(20240915)

    def call(*arguments: Any, **options: Any) -> Any:
        value = real(*arguments, **options)
        if luck.random() >= rate:
            return value
        with torch.no_grad():
            return value + (torch.nextafter(value, torch.full_like(value, 9e9)) - value)

    with mock.patch.object(holder, name, call):
        yield


@contextlib.contextmanager
def as_with_full() -> Iterator[None]:
    """Let checks repeat as often as with --full."""
    selftest.REPEATED.set_for("full")
    try:
        yield
    finally:
        selftest.REPEATED.set_for("battery")


@contextlib.contextmanager
def both_of(first: Any, second: Any) -> Iterator[None]:
    """Let two things be the case."""
    with first, second:
        yield


@contextlib.contextmanager
def another_version() -> Iterator[None]:
    """Let the image's constraints name another NumPy than the one that is installed."""
    path = PROGRAM.with_name("constraints.txt")
    path.write_text("# made by a test\nnumpy==1.0.0\n")
    try:
        yield
    finally:
        path.unlink()


@contextlib.contextmanager
def package_that_breaks() -> Iterator[None]:
    """Let the image's lock name a package whose module is not there."""
    path = PROGRAM.with_name("pylock.toml")
    path.write_text("[tool.reprobuild.request]\npackages = ['numpy']\n")
    try:
        with mock.patch.object(selftest, "modules_of", return_value=["nonsense"]):
            yield
    finally:
        path.unlink()


def package_of_another_cuda() -> Any:
    """Let the image have CUDA 12, and a package that links CUDA 13."""
    objects = (
        selftest.SharedObject("/cuda/libcudart.so.12", "libcudart.so.12", ()),
        selftest.SharedObject("/lib/site-packages/audio/a.so", "a.so", ("libcudart.so.13",)),
    )
    return mock.patch.object(selftest, "installed_objects", return_value=objects)


@contextlib.contextmanager
def another_file(name: str) -> Iterator[None]:
    """Let the image's manifest name other bytes than those of a file."""
    path = PROGRAM.with_name("manifest.tsv")
    before = path.read_text()
    lines = [line.split("\t") for line in before.splitlines()]
    path.write_text(
        "".join(
            "\t".join([*line[:2], "0" * 64 if name in line[3] else line[2], line[3]]) + "\n" for line in lines
        )
    )
    try:
        yield
    finally:
        path.write_text(before)


def write_manifest() -> None:
    """Write a manifest as an image has one, of two files that are there."""
    files = torch.__file__, f"{sys.prefix}/pyvenv.cfg"
    hashes = [hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in files]
    lines = [f"file\t0644\t{digest}\t{path}\n" for path, digest in zip(files, hashes, strict=True)]
    PROGRAM.with_name("manifest.tsv").write_text("".join(lines))


def write_golden(*names: str) -> None:
    """Keep as golden what this torch gives."""
    place = f"torch {torch.__version__.partition('+')[0]} on {os.uname().machine}"
    found = {
        name: {what: selftest.fingerprint(value) for what, value in selftest.CHECKS[name].run("cpu").items()}
        for name in names
    }
    PROGRAM.with_name("golden.json").write_text(json.dumps({place: found}))


@contextlib.contextmanager
def compiled_as_is(path: str | None) -> Iterator[None]:
    """Let torch.compile do nothing; with the path of a function, write a file and drift."""

    def compile_nothing(module: Any, **_: Any) -> Any:
        if path:
            folder = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
            folder.mkdir(exist_ok=True)
            (folder / "kernel.so").touch()
        return module

    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(torch, "compile", compile_nothing))
        stack.enter_context(mock.patch.object(selftest, "toolchain_missing", return_value=""))
        if path:
            stack.enter_context(drifting(path))
        yield


def too_large(*_: Any, **__: Any) -> Any:
    """Stand for an operation that the device has no memory for."""
    raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def draws_unseeded(*_: Any, **__: Any) -> Any:
    """Stand for a function whose result changes from call to call."""
    return os.urandom(8)


def not_split(*arguments: Any, **options: Any) -> Any:
    """Return a sampler that gives all ranks the samples of the first."""
    return SAMPLER(*arguments, **{**options, "rank": 0})


def generator_from_the_system(*_: Any) -> Any:
    """Return a NumPy Generator that ignores its seed."""
    return GENERATOR()


def convolution_that_races() -> Any:
    """Let a convolution turn cuDNN's autotuning on."""
    real = torch.nn.functional.conv2d

    def conv2d(*arguments: Any, **options: Any) -> Any:
        torch.backends.cudnn.benchmark = True
        return real(*arguments, **options)

    return mock.patch.object(torch.nn.functional, "conv2d", conv2d)


def rounded(function: str, owner: Any) -> Any:
    """Let a function round its inputs as TF32 does, to 10 bits after the first."""

    def tf32(value: Any) -> Any:
        narrow = value.dtype == torch.float32
        return (value.view(torch.int32) & ~0x1FFF).view(torch.float32) if narrow else value

    real = getattr(owner, function)
    return mock.patch.object(owner, function, lambda a, b: real(tf32(a), tf32(b)))


def shared_generator() -> Any:
    """Let every worker of a DataLoader draw the same numbers."""
    return mock.patch.object(torch, "rand", return_value=torch.tensor(0.5, dtype=torch.float64))


@contextlib.contextmanager
def flag_without_effect(path: str) -> Iterator[None]:
    """Let nothing turn deterministic algorithms on; a function differs with each call, as a race need not."""
    ineffective = mock.patch.object(selftest, "set_flag", ignored)
    with selftest.setting(deterministic=False), ineffective, drifting(path):
        yield


cudnn, private = torch.backends.cudnn, torch._C
SAMPLER, GENERATOR = torch.utils.data.DistributedSampler, selftest.np.random.default_rng
ignored: Any = lambda *_, **__: None  # noqa: E731
one: Any = lambda *_, **__: torch.ones(1000)  # noqa: E731
ends: Any = lambda *_, **__: os._exit(3)  # noqa: E731
as_it_is: Any = lambda value: value  # noqa: E731

COMPILED = ("compiled", "flex-attention")

CASES: dict[str, Callable[[], Any]] = {
    **{
        f"{name}: drifts by one unit in the last place": lambda path=path: drifting(path)  # type: ignore[misc]
        for name, path in OPERATIONS.items()
    },
    "setting-deterministic: flag off": lambda: selftest.setting(deterministic=False),
    "setting-deterministic: warns only": lambda: call(
        lambda: private._set_deterministic_algorithms(True, warn_only=True),
        lambda: private._set_deterministic_algorithms(True, warn_only=False),
    ),
    "setting-cudnn: not deterministic": lambda: flag(cudnn, "deterministic", False),
    "setting-cudnn: benchmark on": lambda: flag(cudnn, "benchmark", True),
    "setting-fill: on, not asked for": lambda: mock.patch.dict(selftest.AT_START, fill=True),
    "setting-tf32: Triton's default": lambda: variable("TRITON_F32_DEFAULT", None),
    "setting-tf32: on in cuBLAS": lambda: flag(torch.backends.cuda.matmul, "allow_tf32", True),
    "setting-tf32: variable unset": lambda: variable("NVIDIA_TF32_OVERRIDE", None),
    "setting-threads: another number": lambda: call(
        lambda: torch.set_num_threads(2), lambda: torch.set_num_threads(1)
    ),
    "setting-threads: variable unset": lambda: variable("OMP_NUM_THREADS", None),
    "setting-threads: MKL has another": lambda: variable("MKL_NUM_THREADS", "2"),
    "setting-threads: dynamic": lambda: variable("OMP_DYNAMIC", "TRUE"),
    "setting-hash-seed: unset": lambda: variable("PYTHONHASHSEED", None),
    "setting-hash-seed: random": lambda: variable("PYTHONHASHSEED", "random"),
    "setting-cublas-workspace: unset": lambda: variable("CUBLAS_WORKSPACE_CONFIG", None),
    "setting-cublas-workspace: another": lambda: variable("CUBLAS_WORKSPACE_CONFIG", ":0:0"),
    "setting-profile: MKL unset": lambda: variable("MKL_CBWR", None),
    "setting-profile: not the portable one": lambda: variable("REPROBUILD_PROFILE", "portable"),
    "precision: TF32 in a product": lambda: rounded("matmul", torch),
    "precision: TF32 in a convolution": lambda: rounded("conv2d", torch.nn.functional),
    "setting-forbidden: one set": lambda: variable("TORCHINDUCTOR_MAX_AUTOTUNE", "1"),
    "setting-kernels: locked, and measured": lambda: variable("REPROBUILD_KERNELS", "locked"),
    "setting-seed: not used": lambda: variable("REPROBUILD_SEED", "12345"),
    "setting-kept: a convolution turns benchmark on": convolution_that_races,
    "setting-versions: another NumPy": another_version,
    "requested-imports: a module is missing": package_that_breaks,
    "linked-cuda: another major version": package_of_another_cuda,
    "one-cuda-copy: two of one library": two_libraries,
    "one-cuda-copy: another folder's": stray_library,
    "setting-hook: turned off": lambda: variable("REPROBUILD_DETERMINISM", "off"),
    "setting-hook: gone": lambda: mock.patch.dict(sys.modules, {"reprobuild_hook": None}),
    "subnormals: flushed by torch": lambda: call(
        lambda: torch.set_flush_denormal(True), lambda: torch.set_flush_denormal(False)
    ),
    "subnormals: a package flushes them": package_that_flushes,
    **{
        f"{name}: off by one unit in one call of {calls}": lambda path=path, calls=calls: (  # type: ignore[misc]
            both_of(rarely(path, 1 / calls), as_with_full() if calls > 20 else contextlib.nullcontext())
        )
        for name, path in (("bmm", "torch.bmm"), ("conv2d", "torch.nn.functional.conv2d"))
        for calls in (20, 200)
    },
    "torch-seed-large: always the same numbers": lambda: mock.patch.object(torch, "randn", one),
    "torch-seed: the seed is ignored": lambda: mock.patch.object(torch, "manual_seed", ignored),
    "torch-seed: always the same numbers": lambda: mock.patch.object(torch, "randn", one),
    "python-seed: the seed is ignored": lambda: mock.patch("random.seed", ignored),
    "python-seed: always the same numbers": lambda: mock.patch("random.random", return_value=0.5),
    "numpy-seed: the seed is ignored": lambda: mock.patch("numpy.random.seed", ignored),
    "numpy-seed: always the same numbers": lambda: mock.patch("numpy.random.rand", one),
    "hash-seed: always the same order": lambda: mock.patch("subprocess.check_output", return_value=b"same"),
    "dataloader-workers: the seed is ignored": lambda: mock.patch.object(torch, "manual_seed", ignored),
    "dataloader-workers: workers share numbers": shared_generator,
    "raises: flag off": lambda: selftest.setting(deterministic=False),
    "ranks-gloo: gradients are not shared": lambda: mock.patch.object(
        torch.nn.parallel, "DistributedDataParallel", as_it_is
    ),
    "ranks-gloo: both ranks have the same samples": lambda: mock.patch.object(
        torch.utils.data, "DistributedSampler", not_split
    ),
    "ranks-gloo: a rank dies": lambda: mock.patch.object(torch.optim, "AdamW", ends),
    "generator-state: its state is ignored": lambda: mock.patch.object(torch, "randn", draws_unseeded),
    "setting-environment: a variable is not set": lambda: mock.patch.object(
        selftest, "locked", return_value={"variables": {"REPROBUILD_OF_THE_LOCK": "1"}}
    ),
    "functions: always other numbers": lambda: mock.patch("numpy.einsum", draws_unseeded),
    "attention: memory runs out": lambda: mock.patch.object(
        torch.nn.functional, "scaled_dot_product_attention", too_large
    ),
    "setting-files: another torch": lambda: another_file("torch"),
    "setting-files-all: another file": lambda: another_file("pyvenv.cfg"),
    "golden-streams: another order": lambda: mock.patch.object(
        torch, "randint", return_value=torch.zeros(1000, dtype=torch.int64)
    ),
    "golden-arithmetic: another sum": lambda: mock.patch.object(torch, "bincount", as_it_is),
    "compiled: nothing is compiled": lambda: compiled_as_is(None),
    "flex-attention: nothing is compiled": lambda: compiled_as_is(None),
    "flex-attention: drifts by one unit in the last place": lambda: compiled_as_is(
        "torch.nn.attention.flex_attention.flex_attention"
    ),
    "sums-gloo: nothing is added": lambda: mock.patch.object(torch.distributed, "all_reduce", ignored),
    "sums-gloo: other numbers in each call": lambda: mock.patch.object(
        torch.distributed, "all_reduce", lambda value: value.uniform_()
    ),
    "compiled: drifts by one unit in the last place": lambda: compiled_as_is(
        "torch.nn.functional.layer_norm"
    ),
    "dataloader-spawn: children without the hook": lambda: variable("REPROBUILD_DETERMINISM", "off"),
    "dataloader-held: the seed is ignored": lambda: mock.patch(
        "numpy.random.default_rng", generator_from_the_system
    ),
    "dataloader-held: nothing mends it": lambda: mock.patch.object(selftest, "reseed_held", ignored),
    "distributed-sampler: set_epoch is ignored": lambda: mock.patch.object(SAMPLER, "set_epoch", ignored),
    "distributed-sampler: both ranks have the same samples": lambda: mock.patch.object(
        torch.utils.data, "DistributedSampler", not_split
    ),
    "prove-index-put: the flag does nothing": lambda: flag_without_effect("torch.Tensor.index_put_"),
    "prove-index-put: nothing to see": lambda: mock.patch.object(torch, "set_num_threads", ignored),
    "prove-indexing: the flag does nothing": lambda: flag_without_effect("torch.autograd.grad"),
    "prove-torch-seed: the seed is ignored": lambda: mock.patch.object(torch, "manual_seed", ignored),
    "prove-torch-seed: nothing to see": lambda: mock.patch.object(torch, "rand", one),
    "prove-python-seed: the seed is ignored": lambda: mock.patch("random.seed", ignored),
    "prove-python-seed: nothing to see": lambda: mock.patch("random.random", return_value=0.5),
    "prove-numpy-seed: the seed is ignored": lambda: mock.patch("numpy.random.seed", ignored),
    "prove-numpy-seed: nothing to see": lambda: mock.patch("numpy.random.rand", one),
    "prove-hash-seed: unset": lambda: variable("PYTHONHASHSEED", None),
    "prove-hash-seed: nothing to see": lambda: mock.patch("subprocess.check_output", return_value=b"same"),
    "prove-workers: the seed is ignored": lambda: mock.patch.object(torch, "manual_seed", ignored),
    "conv2d: crashes": lambda: mock.patch.object(torch.nn, "Conv2d", None),
    "control: the flag does nothing": lambda: flag_without_effect("torch.Tensor.index_put_"),
    "control: nothing to see": lambda: mock.patch.object(torch, "set_num_threads", ignored),
}


def main() -> None:
    """Run each check alone, then each under its sabotages."""
    selftest.fill_memory()  # as `child` does
    write_manifest()
    write_golden("golden-streams", "golden-arithmetic")
    outcomes = {
        f"clean: {name}": selftest.execute(check, "cpu")
        for name, check in selftest.CHECKS.items()
        if "cpu" in check.devices and name not in COMPILED  # half a minute each; --full has them
    }
    for case, sabotage in CASES.items():
        with sabotage(), flag(cudnn, "benchmark", cudnn.benchmark):  # put back what the broken check leaves
            outcomes[case] = selftest.execute(selftest.CHECKS[case.split(":")[0]], "cpu")
        assert torch.are_deterministic_algorithms_enabled(), case
    json.dump({case: [found.status, found.reason] for case, found in outcomes.items()}, sys.stdout)


if __name__ == "__main__":
    main()
