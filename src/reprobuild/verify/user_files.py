"""Files of users and libraries that add code or settings to a program of theirs. Pure.

Notebooks run files of IPython's and start kernels by specifications (IPython, "Introduction to IPython
configuration"; jupyter-client, "Making kernels for Jupyter"). torch, Triton, Numba, CuPy and the driver
take compiled code from caches, in place of compiling what is locked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from .commands import is_harmless
from .compare import Difference
from .context import PREFIX, Context
from .shells import homes

_RUN = (
    *(".ipython/profile_*/startup/*.py", ".ipython/profile_*/startup/*.ipy"),
    *(".ipython/profile_*/ipython_config.*", ".ipython/profile_*/ipython_kernel_config.*"),
)
"""Of a user: what IPython runs or reads before the first line."""

_RUN_FOR_ALL = tuple(
    f"{folder}/ipython/{name}"
    for folder in ("etc", "usr/local/etc", f"{PREFIX}/etc")
    for name in ("ipython_config.*", "ipython_kernel_config.*", "startup/*")
)

_COMPILED = (
    # Wherever: TMPDIR, TEMP and TMP say where folders for temporary files are.
    *("torchinductor_*/*", "*/torchinductor_*/*", "*/.triton/*", "*/.nv/ComputeCache/*"),
    *("*/.cache/torch_extensions/*", "*/.cache/torch/kernels/*", "*/.cache/torch/inductor/*"),
    *("*/.cache/numba/*", "*/.cupy/kernel_cache/*", "*/.cache/flashinfer/*", "*/.cache/tvm-ffi/*"),
)
"""Where compiled code is looked for before anything is compiled."""

_NUMBA = (f"{PREFIX}/*.nbi", f"{PREFIX}/*.nbc")
"""What Numba keeps beside a module; that of a package of one's own is as free as the package."""

_SERVERS = tuple(
    f"{folder}/jupyter/jupyter*_config.py" for folder in ("etc", "usr/local/etc", f"{PREFIX}/etc")
)
_ICONV = "usr/lib/*/gconv/gconv-modules.d/*.conf"

_KERNELS = "*/kernels/*/kernel.json"
_DEFAULT_KERNEL = "python3"
_PYTHONS = frozenset(
    ("python", "python3", f"/{PREFIX}/bin/python", f"/{PREFIX}/bin/python3", "/usr/bin/python3")
)
_SETTINGS = (".numba_config.yaml",)


def is_read_of_users(path: str, size: int) -> bool:
    """Whether `user_files` needs the content of a file, by its path without a leading slash."""
    return fnmatchcase(path, _KERNELS) and size < 1 << 16


def user_files(context: Context) -> Iterator[Difference]:
    """Yield what runs, or is taken in place of what would be compiled, in a program of a user's."""
    own = [f"{home}/{name}" for home in homes(context) for name in _RUN]
    start = context.start.strip("/")
    settings = [f"{start}/{name}".lstrip("/") for name in _SETTINGS]
    patterns = (*own, *_RUN_FOR_ALL, *_COMPILED)
    for path in context.added:
        runs = path in settings or any(fnmatchcase(path, each) for each in patterns)
        default = fnmatchcase(path, _KERNELS) and path.split("/")[-2].lower() == _DEFAULT_KERNEL
        if runs or _is_numba_s(path, context) or (default and not _starts_locked_python(path, context)):
            yield Difference(f"/{path}", "runs at start", "", f"/{path}")


def unknown_of_users(context: Context) -> Iterator[str]:
    """Yield what a user may start, or a server reads, whose effect is not known."""
    servers = (*_SERVERS, *(f"{home}/.jupyter/jupyter*_config.py" for home in homes(context)))
    for path in context.added:
        if any(fnmatchcase(path, each) for each in servers):
            yield f"/{path} (Jupyter runs it)"
        elif fnmatchcase(path, _ICONV):
            yield f"/{path} (iconv reads it)"
        elif _is_other_kernel(path) and not _starts_locked_python(path, context):
            yield f"/{path} (a kernel of Jupyter's)"


def _is_other_kernel(path: str) -> bool:
    return fnmatchcase(path, _KERNELS) and path.split("/")[-2].lower() != _DEFAULT_KERNEL


def _is_numba_s(path: str, context: Context) -> bool:
    """Return whether a file is Numba's for a module of a locked package."""
    if not any(fnmatchcase(path, each) for each in _NUMBA):
        return False
    folder = path.partition("/__pycache__/")[0] + "/"
    return any(name.startswith(folder) for name in context.named)


def _starts_locked_python(path: str, context: Context) -> bool:
    """Whether a kernel for notebooks is Python of PATH as it is, or no Python of the lock's at all."""
    try:
        found: Any = json.loads(context.tree.kept.get(path, b""))
        command = [str(word) for word in found["argv"]]
        variables = dict(found.get("env") or {})
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
    said = (
        f"{path.rpartition('/kernels/')[2]} {found.get('language')} {found.get('display_name')} {command[:1]}"
    )
    if "python" not in said.lower():
        return True  # another language's
    plain = (
        command[:1]
        and command[0] in _PYTHONS
        and command[1:3]
        in (
            ["-m", "ipykernel_launcher"],
            ["-Xfrozen_modules=off", "-m"],
        )
    )
    return bool(plain) and all(
        n not in context.env and is_harmless(str(n), str(value), context) for n, value in variables.items()
    )
