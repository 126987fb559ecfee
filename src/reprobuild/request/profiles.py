"""The variables that a profile bakes into the image. Pure.

Variables cannot turn on torch's deterministic algorithms or cuDNN's flags; ``in_image/reprobuild_hook.py``
does that.
"""

from __future__ import annotations

from collections.abc import Mapping

from packaging.version import Version

from .image_layout import OWN_FOLDER, SITE_PREFIX
from .model import Request

_NUMPY_KERNELS = {
    (2, 4): "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    (2, 3): (
        "SSSE3 SSE41 POPCNT SSE42 AVX F16C FMA3 AVX2 AVX512F AVX512CD AVX512_KNL AVX512_KNM AVX512_SKX"
        " AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR"
    ),
    (0, 0): (
        "SSSE3 SSE41 POPCNT SSE42 AVX F16C FMA3 AVX2 AVX512F AVX512CD AVX512_KNL AVX512_KNM AVX512_SKX"
        " AVX512_CLX AVX512_CNL AVX512_ICL"
    ),
}
"""The CPU features by which NumPy chooses kernels at run time on x86_64, by the first version that has these
names: ``__cpu_dispatch__`` of the wheels of 1.24 to 2.4."""

LIBRARY_THREADS = (
    # https://github.com/flame/blis/blob/master/docs/Multithreading.md
    "BLIS_NUM_THREADS",
    # https://itk.org/Doxygen/html/classitk_1_1MultiThreaderBase.html
    "ITK_GLOBAL_DEFAULT_NUMBER_OF_THREADS",
    # https://numba.readthedocs.io/en/stable/reference/envvars.html#envvar-NUMBA_NUM_THREADS
    "NUMBA_NUM_THREADS",
    # https://numexpr.readthedocs.io/en/latest/user_guide.html#threadpool-configuration: the pool's size, and
    # how much of it is used, which cannot be more.
    "NUMEXPR_MAX_THREADS",
    "NUMEXPR_NUM_THREADS",
    # https://docs.opencv.org/4.x/d6/dea/tutorial_env_reference.html
    "OPENCV_FOR_THREADS_NUM",
    # https://docs.pola.rs/api/python/stable/reference/api/polars.thread_pool_size.html
    "POLARS_MAX_THREADS",
    # https://docs.rs/rayon/latest/rayon/struct.ThreadPoolBuilder.html#method.num_threads
    "RAYON_NUM_THREADS",
    # https://github.com/tensorflow/tensorflow/blob/v2.16.1/tensorflow/core/common_runtime/process_util.cc
    "TF_NUM_INTRAOP_THREADS",
)
"""Variables of libraries that choose their number of threads independently of OpenMP.

A request may set each to another number in its ``environment``: not every library's numbers depend on it.
"""


def variables(request: Request, numpy: str | None = None) -> Mapping[str, str]:
    """Return the variables of the request's profile, and those that it names itself, sorted by name.

    ``strict``: the same bits on one kind of machine. ``portable``: CPU results that agree across kinds of
    x86_64 CPU that have AVX2, at a price (bf16 products are many times slower); docs/self-test.md names what
    it does not cover. ``numpy`` is the version of NumPy in the image, which decides how it names the features
    of a CPU; without one, nothing is set for it. Each line says what it fixes.
    """
    threads = str(request.threads)
    fixed = {
        # The order of sets of str, of each run.
        "PYTHONHASHSEED": "0",
        # cuBLAS's workspace: with it fixed, a product on several streams repeats. Torch up to 2.9 raises
        # without it, later ones read its size (pytorch/pytorch#161749).
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        # TF32 off in cuBLAS and cuDNN, whatever the program sets.
        "NVIDIA_TF32_OVERRIDE": "0",
        # The number of threads decides where a reduction is cut.
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        **dict.fromkeys(LIBRARY_THREADS, threads),
        "OMP_DYNAMIC": "FALSE",
        "MKL_DYNAMIC": "FALSE",
        # AUTO: the same result whatever the alignment of the inputs. COMPATIBLE: also whatever the CPU.
        "MKL_CBWR": "AUTO",
        # Inductor: no autotuning that changes numbers.
        "TORCHINDUCTOR_DETERMINISTIC": "1",
        # Triton: a float32 tl.dot keeps float32, where its default is TF32; and what autotuning has chosen
        # by timing is kept beside the compiled kernel, so that later processes choose the same.
        "TRITON_F32_DEFAULT": "ieee",
        "TRITON_CACHE_AUTOTUNING": "1",
        # NCCL: one algorithm and protocol, so one order of reduction.
        "NCCL_ALGO": "Ring",
        "NCCL_PROTO": "Simple",
        "REPROBUILD_PROFILE": request.profile,
    }
    if request.profile == "portable":
        fixed |= {
            "MKL_CBWR": "COMPATIBLE",
            "ATEN_CPU_CAPABILITY": "avx2",
            "ONEDNN_MAX_CPU_ISA": "AVX2",
            # NumPy's own OpenBLAS; torch's products are MKL's and oneDNN's.
            "OPENBLAS_CORETYPE": "Haswell",
        }
        if numpy is not None:
            # All of them: even with AVX2 alone, argsort orders equal keys by the CPU.
            release = Version(numpy).release
            kernels = next(names for since, names in _NUMPY_KERNELS.items() if release >= since)
            fixed["NPY_DISABLE_CPU_FEATURES"] = kernels
    if request.fill:
        fixed["REPROBUILD_FILL"] = "1"
    if request.kernels.locked:
        fixed["REPROBUILD_KERNELS"] = "locked"
    if request.seed is not None:
        fixed["REPROBUILD_SEED"] = str(request.seed)
    if request.seed_by_rank:
        fixed["REPROBUILD_SEED_BY_RANK"] = "1"
    # Of those above `LIBRARY_THREADS` alone, and none of `surroundings`: see environment.py.
    fixed |= dict(request.environment)
    return dict(sorted(fixed.items()))


def names(request: Request) -> frozenset[str]:
    """Return the names of all variables that a lock of a request may hold, whatever NumPy is in it."""
    return frozenset(variables(request, "2.0"))


def surroundings(*, conda: bool = False) -> Mapping[str, str]:
    """Return the variables of every image that do not affect determinism, sorted by name.

    ``conda``: the environment is a prefix of conda's and no virtual environment.
    """
    return {
        **({"CONDA_PREFIX": SITE_PREFIX} if conda else {}),
        "LANG": "C.UTF-8",
        # NVIDIA's runtime hooks hand the driver in only where these ask for it.
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        "NVIDIA_VISIBLE_DEVICES": "all",
        "PATH": f"{SITE_PREFIX}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        # A derived `pip install` cannot swap a locked package silently.
        "PIP_CONSTRAINT": f"{OWN_FOLDER}/constraints.txt",
        "UV_CONSTRAINT": f"{OWN_FOLDER}/constraints.txt",
        **({} if conda else {"VIRTUAL_ENV": SITE_PREFIX}),
    }
