"""What a failed build lacks, from what real builds have said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reprobuild.sources.failures import Setting, advice, last_lines, wants_old_setuptools

THING = Setting(name="thing", headers="python3.11-dev", cuda="13.0")
COMPILER = '[build] apt = ["g++", "python3.11-dev"]'
COMPILED = frozenset({"g++", "python3.11-dev"})


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("error: command 'gcc' failed: No such file or directory", COMPILER),
        ("error: command 'x86_64-linux-gnu-gcc' failed: No such file or directory", COMPILER),
        ("error: command 'g++' failed: No such file or directory", COMPILER),
        ("unable to execute 'x86_64-linux-gnu-gcc': No such file or directory", COMPILER),
        ("/bin/sh: 1: gcc: not found", COMPILER),
        ("RuntimeError: Unsupported compiler -- at least C++11 support is needed!", COMPILER),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'c++'", COMPILER),
        ("CMake Error: CMAKE_CXX_COMPILER not set\nNo CMAKE_CXX_COMPILER could be found.", COMPILER),
        ("ERROR: Unknown compiler(s): [['cc'], ['gcc'], ['clang']]", COMPILER),
        (
            "src/x.c:1:10: fatal error: Python.h: No such file or directory",
            '[build] apt = ["python3.11-dev"]',
        ),
        ("x.c:3:10: fatal error: sndfile.h: No such file or directory", '[build] apt = ["libsndfile1-dev"]'),
        ("x.c:3:10: fatal error: own/thing.h: No such file or directory", "own/thing.h is missing"),
        ("/bin/sh: 1: cmake: not found", '[build] apt = ["cmake", "g++", "make", "python3.11-dev"]'),
        ('AssertionError: Could not find "cmake" executable!', "--build-apt cmake --build-apt g++ "),
        ("ModuleNotFoundError: No module named 'distutils.msvccompiler'", "ask for another version, or one"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'git'", '[build] apt = ["git"]'),
        ("error: can't find Rust compiler", "give --build-apt cargo --build-apt rustc, or"),
        (
            "Cargo, the Rust package manager, is not installed or is not on PATH.",
            '[build] apt = ["cargo", "rustc"]',
        ),
        (
            "error: failed to get `pyo3` as a dependency of package `a`\n  Could not resolve host: a.example",
            "a source in Rust must include its crates",
        ),
        ("pkg-config is required for building it", "give --build-apt pkg-config, or add"),
        (
            "Package libavdevice was not found in the pkg-config search path.",
            "--build-apt libswscale-dev --build-apt pkg-config, or add",
        ),
        ("error: package directory 'thing' does not exist", "the folder thing, which an earlier step"),
        ("No package 'openblas' found", '[build] apt = ["libopenblas-dev"]'),
        ("ModuleNotFoundError: No module named 'numpy'", '[build.thing] requires = ["numpy"]'),
        ("ModuleNotFoundError: No module named 'Cython'", '[build.thing] requires = ["cython"]'),
        ("ModuleNotFoundError: No module named 'cv2'", '[build.thing] requires = ["opencv-python"]'),
        ("ModuleNotFoundError: No module named 'PIL'", '[build.thing] requires = ["pillow"]'),
        (
            "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.",
            "[build.thing] cuda = true",
        ),
        ("/bin/sh: 1: nvcc: not found", 'env = { TORCH_CUDA_ARCH_LIST = "8.0;9.0" }'),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/usr/local/cuda/bin/nvcc'", "cuda = true"),
        ("x.cpp:1:10: fatal error: cuda_runtime.h: No such file or directory", "[build.thing] cuda = true"),
        (
            "ModuleNotFoundError: No module named 'torch'",
            "give --build-torch thing, or add to the request: [build.thing] torch",
        ),
        (
            "Building cuda extension requires PyTorch(>=1.13.0) been installed, please do so first!",
            "give --build-torch thing, or",
        ),
        ("RuntimeError: torch must be installed to build this", "give --build-torch thing, or"),
        ("urllib.error.URLError: <urlopen error [Errno 101] Network is unreachable>", "no network"),
        ("OSError: [Errno 30] Read-only file system: '/usr/x'", "only below /build, not to /usr/x"),
        ("OSError: [Errno 28] No space left on device", "8 GiB"),
        ("KeyError: 'version'", "ask for another version"),
    ],
)
def test_the_line_to_add(said: str, line: str) -> None:
    assert line in advice(f"some lines\n{said}\nmore", THING)


def test_a_file_that_is_not_there_is_no_compiler() -> None:
    assert "g++" not in advice("FileNotFoundError: [Errno 2] No such file or directory: 'README.md'", THING)


CMAKE = """\
CMake Error: unable to find a build program corresponding to "Unix Makefiles".  CMAKE_MAKE_PROGRAM is not set.
CMake Error: CMAKE_C_COMPILER not set, after EnableLanguage
"""


def test_what_is_there_is_not_asked_for_again() -> None:
    assert "give --build-apt g++ --build-apt make --build-apt python3.11-dev, or" in advice(CMAKE, THING)
    assert "give --build-apt make, or" in advice(CMAKE, replace(THING, debian=COMPILED))
    assert "--build-apt" not in advice(CMAKE, replace(THING, debian=COMPILED | {"make"}))
    torch = replace(THING, installed=frozenset({"torch"}))
    assert "--build-torch" not in advice("please install PyTorch first", torch)


def test_old_setuptools() -> None:
    assert wants_old_setuptools("ModuleNotFoundError: No module named 'pkg_resources'")
    assert not wants_old_setuptools("ModuleNotFoundError: No module named 'numpy'")


def test_what_a_package_is_known_to_want_is_named_at_once() -> None:
    said = advice("pkg-config is required for building PyAV", replace(THING, name="av"))
    flags = " ".join(f"--build-apt lib{name}-dev" for name in ("avcodec", "avdevice", "avfilter"))
    assert f"give --build-apt g++ {flags} " in said
    assert "--build-apt pkg-config --build-apt python3.11-dev, or add" in said


TRACEBACK = """\
running egg_info
Traceback (most recent call last):
  File "/mnt/program.py", line 206, in <module>
    sys.exit(main())
             ^^^^^^
  File "/build/env/lib/python3.11/site-packages/setuptools/build_meta.py", line 333, in run
    exec(code, locals())
  File "<string>", line 42, in <module>
  File "/build/source/thing-1.0/versions.py", line 3, in <module>
    check()
    ^^^^^^^
  File "<frozen importlib._bootstrap>", line 1204, in _gcd_import
AssertionError: git is needed

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/usr/lib/python3.11/subprocess.py", line 1026, in __init__
    self._execute_child(args, executable, preexec_fn, close_fds,
FileNotFoundError: [Errno 2] No such file or directory: 'git'
"""


def test_of_a_traceback_stays_what_is_the_package_s_own() -> None:
    assert last_lines(TRACEBACK).splitlines() == [
        "running egg_info",
        '  File "<string>", line 42, in <module>',
        '  File "/build/source/thing-1.0/versions.py", line 3, in <module>',
        "    check()",
        "    ^^^^^^^",
        "AssertionError: git is needed",
        "FileNotFoundError: [Errno 2] No such file or directory: 'git'",
    ]
    assert last_lines("\n".join(str(n) for n in range(20))) == "\n".join(str(n) for n in range(5, 20))
    assert not last_lines("")
