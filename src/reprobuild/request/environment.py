"""The key ``environment`` of a request: variables of the image beside those of its profile. Pure."""

from __future__ import annotations

import re

from ..in_image.selftest.names import FORBIDDEN
from .table import Table

MOST_VARIABLES = 64
MOST_CHARACTERS = 4096
"""Of a value; Linux takes 128 KiB of one."""

OWN = (
    *("ATEN_CPU_CAPABILITY", "CONDA_PREFIX", "CUBLAS_WORKSPACE_CONFIG", "LANG", "MKL_CBWR", "MKL_DYNAMIC"),
    *("MKL_NUM_THREADS", "NCCL_ALGO", "NCCL_PROTO", "NPY_DISABLE_CPU_FEATURES", "NVIDIA_DRIVER_CAPABILITIES"),
    *(
        "NVIDIA_TF32_OVERRIDE",
        "NVIDIA_VISIBLE_DEVICES",
        "OMP_DYNAMIC",
        "OMP_NUM_THREADS",
        "ONEDNN_MAX_CPU_ISA",
    ),
    *("OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "PATH", "PIP_CONSTRAINT", "PYTHONHASHSEED"),
    *(
        "REPROBUILD_FILL",
        "REPROBUILD_KERNELS",
        "REPROBUILD_PROFILE",
        "REPROBUILD_SEED",
        "REPROBUILD_SEED_BY_RANK",
        "TORCHINDUCTOR_DETERMINISTIC",
    ),
    *("TRITON_CACHE_AUTOTUNING", "TRITON_F32_DEFAULT", "UV_CONSTRAINT", "VIRTUAL_ENV"),
)
"""Variables of an image that reprobuild sets itself: those of `profiles`, of every profile, without
its `LIBRARY_THREADS`."""

_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,127}")
_VALUE = re.compile(r'[^"\\$`]*')
"""A Dockerfile would expand the others."""
_LOGIN = re.compile(r"://[^/\s@]+:[^/\s@]*@")
_STARTS_CODE = re.compile(
    r"LD_\w+|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|BASH_ENV|ENV|BASH_FUNC_.*|SHELLOPTS|PERL5OPT"
    r"|OPENSSL_(CONF|CONF_INCLUDE|MODULES|ENGINES)|OMP_TOOL_LIBRARIES|INTEL_(LIBITTNOTIFY|JIT_PROFILER)(32|64)"
    r"|(CUDA|NVTX)_INJECTION(32|64)_PATH|NCCL_(CONF_FILE|(NET|TUNER|PROFILER|ENV)_PLUGIN)|NVBLAS_CONFIG_FILE"
    r"|TRITON_(\w+_PATH|PLUGIN_\w+)"
    r"|PYTHON(PATH|HOME|STARTUP|USERBASE|SAFEPATH|PLATLIBDIR|PYCACHEPREFIX|INSPECT|BREAKPOINT|EXECUTABLE|WARNINGS)"
    r"|PYTHONNOUSERSITE|PYTHONDONTWRITEBYTECODE"
)
"""What puts other code, or another library, before a program or into it, and so into the self-test too.

ld.so(8), bash(1), python(1), openssl-env(7), OpenMP's OMPT, ITT, CUPTI's and NVTX's injection, NCCL's
plugins."""

_NUMBERS = re.compile(
    r"(DNNL|ONEDNN)_(DEFAULT_FPMATH_MODE|MAX_CPU_ISA|CPU_ISA_HINTS)|MKL_(ENABLE_INSTRUCTIONS|DEBUG_CPU_TYPE)"
    r"|BLIS_ARCH_TYPE|NPY_(EN|DIS)ABLE_CPU_FEATURES|KMP_DETERMINISTIC_REDUCTION|NUMBA_CPU_(NAME|FEATURES)"
    r"|CUBLAS_(EMULAT\w+|FIXEDPOINT_EMULATION\w*)"
)
"""What chooses another precision or other instructions, as `FORBIDDEN` does, in libraries below torch."""


def environment(table: Table) -> tuple[tuple[str, str], ...]:
    """Return the variables that a request asks for, sorted by name. Raises `TableError`."""
    own = table.table("environment", default={})
    if len(own.data) > MOST_VARIABLES:
        raise table.bad("environment", f"more than {MOST_VARIABLES} variables")
    for name, value in own.data.items():
        if not _NAME.fullmatch(name):
            raise own.bad(
                name, f"{name!r} is not a variable's name: expected upper-case letters, digits and _"
            )
        if not isinstance(value, str) or not value.isprintable() or len(value) > MOST_CHARACTERS:
            raise own.bad(name, "expected one line of text in quotes")
        if not _VALUE.fullmatch(value):
            raise own.bad(name, f'{value!r} has ", \\, $ or ` in it, which a Dockerfile would expand')
        if name in OWN or name.startswith("REPROBUILD_"):
            raise own.bad(
                name,
                f"reprobuild sets {name} itself",
                "leave it out; [determinism] has what can be chosen",
            )
        if _LOGIN.search(value):
            raise own.bad(
                name,
                "holds a password, which everybody who gets the image could read",
                "give it to the run: `reprobuild run -e NAME=VALUE`",
            )
        if name in FORBIDDEN or _NUMBERS.fullmatch(name):
            raise own.bad(name, f"{name} changes how numbers are computed", "leave it out")
        if _STARTS_CODE.fullmatch(name):
            raise own.bad(
                name,
                f"{name} runs other code before every program, the self-test too",
                "put the code into a package of its own, or set the variable when you run the image",
            )
    return tuple(sorted(own.data.items()))
