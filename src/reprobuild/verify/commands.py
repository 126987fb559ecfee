"""An image → what its configuration puts before a user's program, or around it. Pure.

The rule is that of whoever starts the program: PATH is searched in its order (execvp(3)), the entry point
runs first (image-spec, config.md), and a shell reads what BASH_ENV and ENV name (bash(1), dash(1)).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from ..in_image.selftest.names import FORBIDDEN
from ..render.image_config import image_config
from .compare import Difference
from .context import PREFIX, Context
from .links import folders, resolve

_FAMILIES = (
    *("ATEN_", "BLIS_", "CUBLAS", "CUDA_", "CUDNN_", "DNNL_", "GLIBC_", "GOMP_", "GOTO_", "KMP_", "LD_"),
    *("MALLOC_", "MKL_", "NCCL_", "NPY_", "NUMBA_", "NUMEXPR_", "NVIDIA_", "OMP_", "ONEDNN_", "OPENBLAS_"),
    *("PYTHON", "PYTORCH_", "REPROBUILD_", "TBB_", "TORCH", "TRITON_", "BASH_", "CUTLASS_", "INDUCTOR_"),
)
"""How variables begin that a locked library, the dynamic linker, Python or a shell reads."""

_OTHERS = ("ENV", "SHELLOPTS", "LOCPATH", "GCONV_PATH", "NLSPATH", "HOSTALIASES", "RESOLV_HOST_CONF")

_HARMLESS = re.compile(
    r"PYTHON(PATH|UNBUFFERED|DONTWRITEBYTECODE|IOENCODING|UTF8|FAULTHANDLER|NOUSERSITE|SAFEPATH)"
    r"|PYTHON(_VERSION|_PIP_VERSION|_SETUPTOOLS_VERSION|_SHA256|_GET_PIP_(URL|SHA256))"
    r"|LD_LIBRARY_PATH|CUDA_(VISIBLE_DEVICES|DEVICE_ORDER|HOME|PATH|VERSION|LAUNCH_BLOCKING)"
    r"|NVIDIA_(REQUIRE_\w+|PRODUCT_NAME|BUILD_ID|PYTORCH_VERSION)|NCCL_(DEBUG\w*|SOCKET_IFNAME|IB_HCA|VERSION)"
    r"|TORCH_(HOME|EXTENSIONS_DIR|CUDA_ARCH_LIST|LOGS)|TORCHINDUCTOR_CACHE_DIR|TRITON_CACHE_DIR"
)
"""Of these, what chooses no code and no algorithm, or is judged by the folders in it."""

_PYTHON = re.compile(r"python[0-9.]*")
_PLAIN_OPTIONS = re.compile(r"-[uBbq]*[cm]?")

_BESIDE = ("Healthcheck", "Volumes")


def commands(context: Context) -> Iterator[Difference]:
    """Give what runs, or is read, before a user's program does, and what rules images built on this one."""
    yield from _variables(context)
    yield from _shadowed(context)
    yield from _entry_point(context)
    config = context.tree.config
    for name in ("OnBuild", "Shell"):
        if value := config.get(name):
            yield Difference(name, "setting", "", json.dumps(value))
    for volume in sorted(config.get("Volumes") or {}):
        place = resolve(volume, context.tree.files)
        if place is None or any(_overlap(place, kept) for kept in _KEPT):
            yield Difference(f"Volumes {volume}", "setting", "", volume)


_KEPT = (PREFIX, "opt/reprobuild", "usr", "lib", "lib64", "bin", "etc")
"""What no volume may lie over, or below."""


def _overlap(one: str, other: str) -> bool:
    return not one or f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def beside(config: Mapping[str, object]) -> Mapping[str, str]:
    """Return settings that the lock does not have and that reach no user's program, for whoever reads on."""
    return {name: json.dumps(value, sort_keys=True) for name in _BESIDE if (value := config.get(name))}


def _variables(context: Context) -> Iterator[Difference]:
    lock = context.lock
    locked = {*image_config(lock).env, *FORBIDDEN, "REPROBUILD_DETERMINISM"}
    for name, value in sorted(context.env.items()):
        known = name.startswith(_FAMILIES) or name in _OTHERS or "()" in value[:4]
        if known and name not in locked and not _HARMLESS.fullmatch(name):
            yield Difference(f"Env {name}", "setting", "", value)


def _shadowed(context: Context) -> Iterator[Difference]:
    """Programs that PATH finds elsewhere than in the image of the lock."""
    tree, path = context.tree, context.env.get("PATH", "")
    if f"/{PREFIX}/bin" not in path.split(":"):
        return  # which is a difference of its own
    before = folders(image_config(context.lock).env["PATH"], "/", tree.files)
    after = folders(path, context.start, tree.files)
    programs: dict[str, list[str]] = {folder: [] for folder in (*before, *after)}
    for file, record in tree.files.items():
        folder, _, name = file.rpartition("/")
        if folder in programs and (record.kind == "link" or (record.kind == "file" and record.mode & 0o111)):
            programs[folder].append(name)
    first, locked = dict[str, str](), dict[str, str]()
    for folder in after:
        for name in programs[folder]:
            first.setdefault(name, folder)
    for folder in before:
        for name in programs[folder]:
            if f"{folder}/{name}" in context.named:
                locked.setdefault(name, folder)
    for name, folder in sorted(locked.items()):
        if first.get(name, folder) != folder:
            yield Difference(
                f"/{first[name]}/{name}", "shadows", f"/{folder}/{name}", f"/{first[name]}/{name}"
            )


def _entry_point(context: Context) -> Iterator[Difference]:
    """An entry point that is another program than the locked Python, with options that leave it as it is."""
    given = context.tree.config.get("Entrypoint") or []
    if not given:
        return
    program, *arguments = given
    name = program.rpartition("/")[2]
    places = (
        (PREFIX + "/bin",)
        if "/" not in program
        else (resolve(program.rpartition("/")[0], context.tree.files),)
    )
    options = [each for each in _options(arguments) if not _PLAIN_OPTIONS.fullmatch(each)]
    if options or not _PYTHON.fullmatch(name) or places != (f"{PREFIX}/bin",):
        yield Difference("Entrypoint", "runs at start", "", json.dumps(given))


def _options(arguments: list[str]) -> Iterator[str]:
    """Give Python's options, which end at a script, ``-c`` or ``-m``."""
    for argument in arguments:
        if not argument.startswith("-"):
            return
        yield argument
        if argument.endswith(("c", "m")) or argument == "-":
            return
