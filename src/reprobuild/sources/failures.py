"""What a failed build lacks, guessed from its output: the line of the request that adds it. Pure."""

from __future__ import annotations

import re

_COMPILER = r"(?:[\w.-]+-linux-gnu-)?(?:gcc|cc|g\+\+|c\+\+)"
_COMPILERS = re.compile(
    rf"command '{_COMPILER}' failed: No such file|unable to execute '{_COMPILER}': No such file"
    rf"|(?:^|[\s/]){_COMPILER}: (?:command )?not found|No such file or directory: '{_COMPILER}'"
    r"|Unsupported compiler -- at least C\+\+|No CMAKE_(?:C|CXX)_COMPILER"
    r"|CMAKE_(?:C|CXX)_COMPILER not set|Unknown compiler\(s\)",
    re.MULTILINE,
)
_PYTHON_H = re.compile(
    r"Python\.h: No such file|Could NOT find Python3? .*Development|missing: .*Development\.Module"
)
_HEADER = re.compile(r"fatal error: ([\w./+-]+\.h\w*): No such file")
_MODULE = re.compile(r"(?:ModuleNotFoundError|ImportError): No module named '?([A-Za-z_]\w*)")
_NVCC = re.compile(
    r"CUDA_HOME environment variable is not set|nvcc['\"]?:? (?:command )?not found|nvcc was not found"
    r"|No such file or directory: '[^'\n]*nvcc'|No CMAKE_CUDA_COMPILER|/nvcc: No such file"
    r"|command '[^'\n]*nvcc' failed: No such file|fatal error: cuda\w*\.h\w*: No such file"
)
_PROGRAM = re.compile(
    r"sh: (?:\d+|line \d+): ([A-Za-z][\w.+-]*): (?:command )?not found"
    r"|\[Errno 2\] No such file or directory: '([A-Za-z][\w.+-]*)'"
)
_LIBRARY = re.compile(
    r"No package '([A-Za-z][\w.+-]*)' found|Package ([A-Za-z][\w.+-]*) was not found in the pkg-config"
)
_PKG_CONFIG = re.compile(r"pkg-config is (?:required|not installed|needed)|Did not find pkg-config")
_NETWORK = re.compile(
    r"Temporary failure in name resolution|Name or service not known|Network is unreachable|"
    r"Could not resolve host|urlopen error|Max retries exceeded|Connection refused"
)
_READ_ONLY = re.compile(r"Read-only file system: '?([^'\n]*)")
_FULL = re.compile(r"No space left on device")

_HEADERS = {
    "zlib.h": "zlib1g-dev",
    "ffi.h": "libffi-dev",
    "openssl/ssl.h": "libssl-dev",
    "openssl/opensslv.h": "libssl-dev",
    "jpeglib.h": "libjpeg-dev",
    "png.h": "libpng-dev",
    "sndfile.h": "libsndfile1-dev",
    "portaudio.h": "portaudio19-dev",
    "libxml/xpath.h": "libxml2-dev",
    "bzlib.h": "libbz2-dev",
    "lzma.h": "liblzma-dev",
    "hdf5.h": "libhdf5-dev",
    "libavcodec/avcodec.h": "libavcodec-dev",
    "mpi.h": "libopenmpi-dev",
    "libaio.h": "libaio-dev",
    "espeak-ng/speak_lib.h": "libespeak-ng-dev",
}
"""Headers that packages ask for, and the Debian package that has each."""

_PROGRAMS = {
    "cmake": "cmake",
    "make": "make",
    "git": "git",
    "pkg-config": "pkg-config",
    "pkgconf": "pkg-config",
    "swig": "swig",
    "cargo": "cargo",
    "rustc": "rustc",
    "gfortran": "gfortran",
    "ninja": "ninja-build",
    "mpicc": "libopenmpi-dev",
}

_MODULES = {"Cython": "cython", "yaml": "pyyaml", "sklearn": "scikit-learn", "skbuild": "scikit-build"}
"""Modules whose package has another name."""

OLD_SETUPTOOLS = "setuptools<81"
"""The releases that have ``pkg_resources``, without a warning that they will not."""


def wants_old_setuptools(said: str) -> bool:
    """Whether a build failed for want of ``pkg_resources``, which newer releases of setuptools lack."""
    return "No module named 'pkg_resources'" in said


def advice(said: str, name: str, headers: str) -> str:
    """Return what to do about a failed build of a package; one thing a line.

    ``headers`` is the Debian package with Python's headers; empty where they are there in any case.
    """
    hints = []
    if apt := _missing_packages(said, headers):
        listed = ", ".join(f'"{each}"' for each in apt)
        flags = " ".join(f"--build-apt {each}" for each in apt)
        hints.append(f"give {flags}, or add to the request: [build] apt = [{listed}]")
    if _NVCC.search(said):
        hints.append(
            f"it needs nvcc: add to the request: [build.{name}] cuda = true, with the GPUs that it is for, "
            'as env = { TORCH_CUDA_ARCH_LIST = "8.0;9.0" }; and [build] apt = ["g++"]'
        )
        return _ended(hints)
    header = _HEADER.search(said)
    if header is not None and not apt:
        hints.append(
            f"{header[1]} is not there: give the Debian package that has it by --build-apt, or in "
            'the request as [build] apt = ["..."]'
        )
    module = _MODULE.search(said)
    if module is not None and module[1] == "torch":
        hints.append(
            f"it needs torch to be built: give --build-torch {name}, or add to the request: "
            f"[build.{name}] torch = true"
        )
    elif module is not None:
        package = _MODULES.get(module[1], module[1].lower().replace("_", "-"))
        hints.append(
            f"its build imports {module[1]} without declaring it; add to the request: "
            f'[build.{name}] requires = ["{package}"]'
        )
    if _NETWORK.search(said):
        hints.append("a build has no network: all that it takes must be in the archive or locked")
    if found := _READ_ONLY.search(said):
        hints.append(f"a build can write below /build alone, not to {found[1] or 'where it tried'}")
    if _FULL.search(said):
        hints.append("a build may write 8 GiB at most, and half of the machine's memory")
    return _ended(hints)


def _ended(hints: list[str]) -> str:
    last = (
        "or ask for a version that has a wheel, or publish a wheel to your own index"
        if hints
        else "ask for another version, or one that has a wheel; or publish a wheel to your own index"
    )
    return "\n".join([*hints, last])


def _missing_packages(said: str, headers: str) -> list[str]:
    found: set[str] = set()
    if _COMPILERS.search(said):
        found |= {"g++", headers}
    if _PYTHON_H.search(said):
        found.add(headers)
    for header in _HEADER.finditer(said):
        if header[1] in _HEADERS:
            found.add(_HEADERS[header[1]])
    for program in _PROGRAM.finditer(said):
        if (name := program[1] or program[2]) in _PROGRAMS:
            found.add(_PROGRAMS[name])
    if _PKG_CONFIG.search(said):
        found.add("pkg-config")
    for library in _LIBRARY.finditer(said):
        # By the rule that most of Debian's follow: libavcodec-dev, libopenblas-dev.
        name = (library[1] or library[2]).lower()
        found.add(f"{name}-dev" if name.startswith("lib") else f"lib{name}-dev")
    return sorted(found - {""})
