"""Settings of an image that run before a user's program, or around it. Pure.

The rule is that of whoever starts the program: PATH is searched in its order (execvp(3)), and a shell reads
what BASH_ENV and ENV name (bash(1), dash(1)).
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping

from ..in_image.selftest.names import FORBIDDEN
from .compare import Difference, settings
from .context import PREFIX, Context
from .entry_point import SHELLS, entry_point, imports_category, program_path
from .links import folders, resolve

_FAMILIES = (
    *(
        "ATEN_",
        "BLIS_",
        "CUBLAS",
        "CUDA_",
        "CUDNN_",
        "DNNL_",
        "FBGEMM_",
        "GLIBC_",
        "GOMP_",
        "GOTO_",
        "INTEL_",
    ),
    *("ITT_", "KMP_", "LD_", "MALLOC_", "MKL_", "NCCL_", "NPY_", "NUMBA_", "NUMEXPR_", "NVCC_", "NVIDIA_"),
    *("OMP_", "ONEDNN_", "OPENBLAS_", "OPENSSL_", "PYTHON", "PYTORCH_", "REPROBUILD_", "TBB_", "TORCH"),
    *("TRITON_", "BASH_", "CUTEDSL_", "CUTLASS_", "INDUCTOR_", "DISABLE_ADDMM", "ENABLE_PERSISTENT_TMA"),
    *(
        "ACC_DEVICE",
        "AOT_INDUCTOR_",
        "AOTI_",
        "AOTINDUCTOR_",
        "ENABLE_TEMPLATE_TMA",
        "ENABLE_TMA_",
        "FSSPEC_",
    ),
    *("GLIBCXX_", "HALIDE_", "KINETO_", "MPMATH_", "NETWORKX_", "NUMPY_EXPERIMENTAL", "NVSHMEM_", "NVTX_"),
    *("QUACK_", "SYMPY_", "TVM_"),
)
"""How variables begin that a locked library, the dynamic linker, Python or a shell reads."""

_OTHERS = frozenset(
    (
        *("SHELLOPTS", "LOCPATH", "GCONV_PATH", "NLSPATH", "HOSTALIASES", "RESOLV_HOST_CONF"),
        *("CC", "CXX", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "GCC_EXEC_PREFIX"),
        *("COMPILER_PATH", "CFLAGS", "CXXFLAGS", "LDFLAGS", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"),
        *("CPPFLAGS", "CUDACXX", "USE_SYMENGINE", "TENSORIFY_PYTHON_SCALARS", "FX_PATCH_GETITEM"),
        *("FAKE_ALLOW_META", "STRICT_DEFAULT", "UNSAFE_SKIP_FSDP_MODULE_GUARDS", "IS_FBCODE"),
        "_SPLITTER_MERGE_OVERLAPPING_FUSIONS",
    )
)
"""Further ones: of the C library, of the compilers of torch.compile and extensions, and folders of
settings."""

_HARMLESS = re.compile(
    r"PYTHON(PATH|UNBUFFERED|DONTWRITEBYTECODE|IOENCODING|UTF8|FAULTHANDLER|NOUSERSITE|SAFEPATH|TRACEMALLOC)"
    r"|PYTHON_(?!(?:CPU_COUNT|CONTEXT_AWARE_WARNINGS|GIL|JIT|PRESITE|THREAD_INHERIT_CONTEXT|TLBC|UOPS)$)\w+"
    r"|LD_LIBRARY_PATH"
    r"|CUDA_(VISIBLE_DEVICES|DEVICE_ORDER|PATH|VERSION|LAUNCH_BLOCKING|MODULE_LOADING|DEVICE_MAX_CONNECTIONS)"
    r"|NVIDIA_(REQUIRE_\w+|DISABLE_REQUIRE|CUDA_END_OF_LIFE|PRODUCT_NAME|BUILD_ID|PYTORCH_VERSION)"
    r"|NCCL_(DEBUG\w*|SOCKET_IFNAME|IB_HCA|IB_DISABLE|P2P_DISABLE|ASYNC_ERROR_HANDLING|VERSION)"
    r"|PYTORCH_(CUDA_)?ALLOC_CONF|MALLOC_(ARENA_MAX|TRIM_THRESHOLD_)|(TORCH\w*|CUDNN|CUBLAS|NVSHMEM)_VERSION"
    r"|TORCH_(HOME|EXTENSIONS_DIR|CUDA_ARCH_LIST|LOGS|DISTRIBUTED_DEBUG|SHOW_CPP_STACKTRACES|CPP_LOG_LEVEL)"
    r"|TORCH_NCCL_ASYNC_ERROR_HANDLING|TORCHELASTIC_\w+|TORCHSERVE_\w+|NUMBA_CACHE_DIR|TRITON_HOME"
)
"""Of these, what chooses no code and no algorithm, or is judged by the folders in it."""

_CODE_FOLDERS = frozenset(
    (
        *("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "TRITON_HOME"),
        *("NUMBA_CACHE_DIR", "CUPY_CACHE_DIR", "PYTORCH_KERNEL_CACHE_PATH", "IPYTHONDIR"),
    )
)
"""Folders of compiled code, or of code that runs: harmless while the image has nothing there."""

_LOCALE = re.compile(r"(C|POSIX|[a-z]{2,3}(_[A-Z]{2})?)\.(UTF-8|utf8)|C|POSIX")
LOCALES = frozenset(("LANG", "LC_ALL", "LC_CTYPE", "LC_NUMERIC"))

_BESIDE = ("Entrypoint", "Healthcheck", "Shell", "User", "Volumes")


def commands(context: Context) -> Iterator[Difference]:
    """Yield what runs, or is read, before a user's program does, and what rules images built on this one."""
    yield from _variables(context)
    yield from _shadowed(context)
    yield from entry_point(context)
    config = context.tree.config
    if value := config.get("OnBuild"):
        yield Difference("OnBuild", "setting", "", json.dumps(value))
    if (shell := config.get("Shell")) and not _is_plain_shell([str(word) for word in shell], context):
        yield Difference("Shell", "setting", "", json.dumps(shell))
    for volume in sorted(config.get("Volumes") or {}):
        place = resolve(volume, context.tree.files)
        if place is None or place in ("", "etc") or _has_locked(place, context):
            yield Difference(f"Volumes {volume}", "setting", "", volume)


def _has_locked(place: str, context: Context) -> bool:
    """Return whether a volume at that path would hide a locked file, or be below a locked folder."""
    below = (
        PREFIX,
        "opt/reprobuild",
        *(folder for folder in _LIBRARY_FOLDERS if folder in context.tree.files),
    )
    return any(f"{place}/".startswith(f"{folder}/") for folder in below) or any(
        path == place or path.startswith(f"{place}/") for path in context.named
    )


_LIBRARY_FOLDERS = (
    "usr/lib",
    "usr/lib64",
    "usr/bin",
    "usr/local/lib",
    "usr/local/bin",
    "lib",
    "lib64",
    "bin",
)


def beside(context: Context) -> Mapping[str, str]:
    """Return settings that the lock does not have, differences among them."""
    config = context.tree.config
    found = {name: json.dumps(value, sort_keys=True) for name in _BESIDE if (value := config.get(name))}
    locked = context.locked_env
    return found | {f"Env {name}": value for name, value in context.env.items() if locked.get(name) != value}


def _variables(context: Context) -> Iterator[Difference]:
    locked = context.locked_env
    if odd := settings(context.tree.config).get("Env"):  # which of two is taken depends on who reads them
        yield Difference("Env", "setting", "", odd)
    for name, value in sorted(context.env.items()):
        judged = name in locked or name in FORBIDDEN or name == "REPROBUILD_DETERMINISM"
        if (name in LOCALES or not judged) and not is_harmless(name, value, context):
            yield Difference(f"Env {name}", "setting", locked.get(name, ""), value)
    path = context.env.get("LD_LIBRARY_PATH", "")
    if "$" in path:  # ld.so(8) puts a folder of its own in its place
        yield Difference("Env LD_LIBRARY_PATH", "setting", "", path)


def is_harmless(name: str, value: str, context: Context) -> bool:
    """Whether the value of a variable leads no locked program to other code or results."""
    files = context.tree.files
    if name in LOCALES:
        return _LOCALE.fullmatch(value) is not None
    if name == "PYTHONWARNINGS":
        return not imports_category(value)
    if name == "ENV":  # a shell reads the file (dash(1)); many set it to the word "production"
        return "/" not in value and resolve(posixpath.join(context.start, value), files) not in files
    if name in _CODE_FOLDERS:
        place = resolve(value, files)
        return place is not None and not any(f"{path}/".startswith(f"{place}/") for path in context.added)
    is_read = name.startswith(_FAMILIES) or name in _OTHERS or "()" in value[:4]
    return not is_read or _HARMLESS.fullmatch(name) is not None


def _shadowed(context: Context) -> Iterator[Difference]:
    """Programs that PATH finds elsewhere than in the image of the lock."""
    path = context.env.get("PATH", "")
    if f"/{PREFIX}/bin" not in path.split(":"):
        return  # which is a difference of its own
    after = folders(path, context.start, context.tree.files)
    programs, first = context.programs(after), dict[str, str]()
    for folder in after:
        for name in programs[folder]:
            first.setdefault(name, folder)
    for name, folder in sorted(context.locked_programs.items()):
        if first.get(name, folder) != folder:
            yield Difference(
                f"/{first[name]}/{name}", "shadows", f"/{folder}/{name}", f"/{first[name]}/{name}"
            )


def _is_plain_shell(shell: list[str], context: Context) -> bool:
    """Return whether commands of a Dockerfile are run by a locked shell that reads nothing before them."""
    program, *options = shell
    name = program.rpartition("/")[2]
    is_locked = name in SHELLS and program_path(program, context) in context.named
    words = r"((--login|-l) )?(-[eux]*o pipefail )?-[euxil]*c"
    return is_locked and re.fullmatch(words, " ".join(options)) is not None
