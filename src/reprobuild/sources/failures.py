"""Guess a failed build's missing dependency from its output, and the request's line that adds it. Pure."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..request.build import FIRST_CUDA, GPUS, has_nvcc_wheels
from .known_packages import FFMPEG, HEADERS, PROGRAMS, TOGETHER, package_of_module
from .setup_py import Script

_COMPILER = r"(?:[\w.-]+-linux-gnu-)?(?:gcc|cc|g\+\+|c\+\+)"
_COMPILERS = re.compile(
    rf"command '{_COMPILER}' failed: No such file|unable to execute '{_COMPILER}': No such file"
    rf"|(?:^|[\s/]){_COMPILER}: (?:command )?not found|No such file or directory: '{_COMPILER}'"
    r"|Unsupported compiler -- at least C\+\+|No CMAKE_(?:C|CXX)_COMPILER"
    r"|CMAKE_(?:C|CXX)_COMPILER not set|Unknown compiler\(s\)",
    re.MULTILINE,
)
_TORCH = re.compile(
    r"(?i:requires (?:py)?torch\b.* (?:be|been) installed|install (?:py)?torch (?:first|before)"
    r"|(?:py)?torch (?:must be|has to be|needs to be|is not) installed)"
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
    r"|(?i:could not find|unable to find|cannot find) (?:the )?[\"'`]?([A-Za-z][\w.+-]*)[\"'`]? executable"
    r"|CMAKE_(MAKE)_PROGRAM is not set"
)
_LIBRARY = re.compile(
    r"No package '([A-Za-z][\w.+-]*)' found|Package ([A-Za-z][\w.+-]*) was not found in the pkg-config"
)
_PKG_CONFIG = re.compile(r"pkg-config is (?:required|not installed|needed)|Did not find pkg-config")
_RUST = re.compile(r"can't find Rust compiler|Cargo, the Rust package manager, is not installed")
_CRATES = re.compile(
    r"failed to (?:get|download) `[^`\n]+`|failed to fetch `https?://|failed to load source for dependency"
)
_NETWORK = re.compile(
    r"Temporary failure in name resolution|Name or service not known|Network is unreachable|"
    r"Could not resolve host|urlopen error|Max retries exceeded|Connection refused"
)
_READ_ONLY = re.compile(r"Read-only file system: '?([^'\n]*)")
_FULL = re.compile(r"No space left on device")

_NO_FOLDER = re.compile(r"package directory '([^'\n]+)' does not exist")
_NO_PACKAGES = sys.stdlib_module_names | {"distutils", "imp", "asyncore", "asynchat", "smtpd"}
"""Modules of Python or setuptools, past or present, which no package of an index provides."""

OLD_SETUPTOOLS = "setuptools<81"
"""The releases that have ``pkg_resources``, without a warning that they will not."""


def wants_old_setuptools(said: str) -> bool:
    """Whether a build failed for want of ``pkg_resources``, which newer releases of setuptools lack."""
    return "No module named 'pkg_resources'" in said


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """The environment of a failed build, and what is known about its package."""

    name: str
    """Of the package, normalised."""
    headers: str = ""
    """The Debian package with Python's headers; empty if they are present anyway."""
    cuda: str = "cpu"
    """Of the request."""
    debian: frozenset[str] = frozenset()
    """Names of the Debian packages that were there."""
    has_nvcc: bool = False
    installed: frozenset[str] = frozenset()
    """Normalised names of the wheels that it was built with."""
    modules: frozenset[str] = frozenset()
    """Names at the top of its source."""
    script: Script = field(default_factory=Script)

    @property
    def has_compiler(self) -> bool:
        """Whether Debian's C++ compiler was there."""
        return "g++" in self.debian


@dataclass(kw_only=True, slots=True)
class _Additions:
    apt: set[str] = field(default_factory=set)
    requires: set[str] = field(default_factory=set)
    torch: bool = False
    cuda: bool = False

    def hint(self, name: str) -> str:
        """Return the flags, and what they write into the request."""
        apt, requires = sorted(self.apt - {""}), sorted(self.requires)
        flags = [f"--build-torch {name}"] * self.torch
        flags += [f"--build-requires {name}:{each}" for each in requires]
        flags += [f"--build-cuda {name} --build-env '{name}:{GPUS}={_SOME_GPUS}'"] * self.cuda
        flags += [f"--build-apt {each}" for each in apt]
        keys = ["torch = true"] * self.torch
        keys += [f"requires = [{_quoted(requires)}]"] * bool(requires)
        keys += [f'cuda = true, env = {{ {GPUS} = "{_SOME_GPUS}" }}'] * self.cuda
        tables = [f"[build] apt = [{_quoted(apt)}]"] * bool(apt)
        tables += [f"[build.{name}] {', '.join(keys)}"] * bool(keys)
        gpus = ", with the GPUs that the image is for" if self.cuda else ""
        return f"give {' '.join(flags)}, or add to the request: {'; '.join(tables)}{gpus}"


_SOME_GPUS = "8.0;9.0"


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{each}"' for each in names)


_FRAME = re.compile(r'  File "([^"\n]+)", line \d+(?:, in .+)?')
_NOT_ITS_OWN = re.compile(r"/mnt/|.*/lib/python3[^/]*/|<frozen ")
_BETWEEN = re.compile(
    r"Traceback \(most recent call last\):|During handling of the above exception, .*"
    r"|The above exception was the direct cause .*|"
)


_MOST_LINES = 15


def last_lines(said: str) -> str:
    """Return the end of a build's output, with only the package's own frames of a traceback.

    Of a traceback stay the exception and the frames of the package's files: not those of this program, of
    Python or of the build backend.
    """
    kept: list[str] = []
    skipped = False
    for line in said.strip().splitlines():
        frame = _FRAME.fullmatch(line)
        if frame is not None:
            skipped = _NOT_ITS_OWN.match(frame[1]) is not None
        elif not line.startswith("    "):
            skipped = False
        if not skipped and not _BETWEEN.fullmatch(line.strip()):
            kept.append(line)
    return "\n".join(kept[-_MOST_LINES:])


def advice(said: str, setting: Setting) -> str:
    """Return what to do about a failed build of a package; one thing a line."""
    name, script = setting.name, setting.script
    more = _Additions(apt=set(_missing_packages(said, setting.headers)))
    if more.apt and name in TOGETHER:
        more.apt |= {*TOGETHER[name], setting.headers}
    hints = []
    module = _MODULE.search(said)
    nvcc = _NVCC.search(said) is not None
    if module is not None and not nvcc:
        # The next ones would be found by the next builds, one by one.
        every = {module[1], *(set(script.imports) - setting.modules)}
        names = {package_of_module(each) for each in every}
        more.torch = "torch" in names
        more.requires = names - {"torch", "setuptools", "pkg-resources"} - setting.installed - _NO_PACKAGES
        nvcc = more.torch and script.cuda and not setting.has_nvcc and setting.cuda != "cpu"
        if more.torch and script.compiles and not setting.has_compiler:
            more.apt |= {"g++", setting.headers}
    more.torch |= _TORCH.search(said) is not None and "torch" not in setting.installed
    if nvcc and has_nvcc_wheels(setting.cuda):
        more.cuda = True
        if not setting.has_compiler:
            more.apt |= {"g++", setting.headers}
    more.apt -= setting.debian
    if more != _Additions():
        hints.append(more.hint(name))
    if nvcc and not more.cuda:
        hints.append(
            f"its CUDA code cannot be compiled for "
            f"{'the CPU' if setting.cuda == 'cpu' else f'CUDA {setting.cuda}'}: NVIDIA's wheels have nvcc "
            f"from CUDA {FIRST_CUDA}.0 on, so take such a --cuda, or a wheel that is built elsewhere: by its "
            f"address, --package '{name} @ https://...', or in a folder that UV_FIND_LINKS names"
        )
    if nvcc:
        return _ended(hints)
    header = _HEADER.search(said)
    if header is not None and not more.apt:
        hints.append(
            f"{header[1]} is missing: name the Debian package that has it with --build-apt, or in "
            'the request as [build] apt = ["..."]'
        )
    return _ended([*hints, *_of_the_sandbox(said)])


def _of_the_sandbox(said: str) -> list[str]:
    """Return hints about a build's missing folders, network and permissions; a line each."""
    hints = []
    if folder := _NO_FOLDER.search(said):
        hints.append(
            f"the build expects the folder {folder[1]}, which an earlier step generates: run that step and "
            "commit its output, or leave the package out"
        )
    if _CRATES.search(said):
        hints.append(
            "a build has no network, so a source in Rust must include its crates (cargo vendor), as few do"
        )
    elif _NETWORK.search(said):
        hints.append("a build has no network: all that it takes must be in the archive or locked")
    if found := _READ_ONLY.search(said):
        hints.append(f"a build can write only below /build, not to {found[1] or 'where it tried'}")
    if _FULL.search(said):
        hints.append("a build may write 8 GiB at most, and half of the machine's memory")
    return hints


UNEXPLAINED = "ask for another version, or one that has a wheel; or publish a wheel to your own index"
"""The remedy for a build failure of unknown cause."""


def _ended(hints: list[str]) -> str:
    last = (
        "or ask for a version that has a wheel, or publish a wheel to your own index"
        if hints
        else UNEXPLAINED
    )
    return "\n".join([*hints, last])


def _missing_packages(said: str, headers: str) -> list[str]:
    found: set[str] = set()
    if _COMPILERS.search(said):
        found |= {"g++", headers}
    if _PYTHON_H.search(said):
        found.add(headers)
    for header in _HEADER.finditer(said):
        if header[1] in HEADERS:
            found.add(HEADERS[header[1]])
    for program in _PROGRAM.finditer(said):
        if (name := program[program.lastindex or 0].lower()) in PROGRAMS:
            found.add(PROGRAMS[name])
    if found & {"cmake", "ninja-build"}:
        found |= {"g++", "make", headers}  # what it asks for next
    if _RUST.search(said):
        found |= {"cargo", "rustc"}
    if _PKG_CONFIG.search(said):
        found.add("pkg-config")
    for library in _LIBRARY.finditer(said):
        # By the rule that most of Debian's follow: libavcodec-dev, libopenblas-dev.
        name = (library[1] or library[2]).lower()
        found.add(f"{name}-dev" if name.startswith("lib") else f"lib{name}-dev")
    if found & set(FFMPEG) or "libavcodec/" in said:
        found |= {"pkg-config", *FFMPEG}  # whoever asks for one asks for more
    return sorted(found - {""})
