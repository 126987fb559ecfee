"""The variables that a profile bakes into the image. Pure.

Variables cannot turn on torch's deterministic algorithms or cuDNN's flags; ``in_image/reprobuild_hook.py``
does that.
"""

from __future__ import annotations

from collections.abc import Mapping

from .model import Request

SITE_PREFIX = "/opt/venv"
OWN_FOLDER = "/opt/reprobuild"


def variables(request: Request) -> Mapping[str, str]:
    """Return the variables of the request's profile, sorted by name.

    ``strict``: the same bits on one kind of machine. ``portable``: CPU results that can agree across kinds
    of CPU, at a price (bf16 products are many times slower). Each line says what it fixes.
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
        "OMP_DYNAMIC": "FALSE",
        "MKL_DYNAMIC": "FALSE",
        # AUTO: the same result whatever the alignment of the inputs. COMPATIBLE: also whatever the CPU.
        "MKL_CBWR": "AUTO",
        # Inductor: no autotuning that changes numbers.
        "TORCHINDUCTOR_DETERMINISTIC": "1",
        # NCCL: one algorithm and protocol, so one order of reduction.
        "NCCL_ALGO": "Ring",
        "NCCL_PROTO": "Simple",
        "REPROBUILD_PROFILE": request.profile,
    }
    if request.profile == "portable":
        fixed |= {"MKL_CBWR": "COMPATIBLE", "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
    if request.seed is not None:
        fixed["REPROBUILD_SEED"] = str(request.seed)
    return dict(sorted(fixed.items()))


def surroundings(*, conda: bool = False) -> Mapping[str, str]:
    """Return the variables of every image that are no setting of determinism, sorted by name.

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
