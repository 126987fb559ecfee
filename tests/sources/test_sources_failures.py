"""What a failed build lacks, from what real builds have said."""

from __future__ import annotations

import pytest

from reprobuild.sources.failures import advice, wants_old_setuptools

COMPILER = '[build] apt = ["g++", "python3.11-dev"]'


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
        ("x.c:3:10: fatal error: own/thing.h: No such file or directory", "own/thing.h is not there"),
        ("/bin/sh: 1: cmake: not found", '[build] apt = ["cmake"]'),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'git'", '[build] apt = ["git"]'),
        ("pkg-config is required for building PyAV", "give --build-apt pkg-config, or add"),
        ("Package libavdevice was not found in the pkg-config search path.", "--build-apt libavdevice-dev,"),
        ("No package 'openblas' found", '[build] apt = ["libopenblas-dev"]'),
        ("ModuleNotFoundError: No module named 'numpy'", '[build.thing] requires = ["numpy"]'),
        ("ModuleNotFoundError: No module named 'Cython'", '[build.thing] requires = ["cython"]'),
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
        ("urllib.error.URLError: <urlopen error [Errno 101] Network is unreachable>", "no network"),
        ("OSError: [Errno 30] Read-only file system: '/usr/x'", "below /build alone, not to /usr/x"),
        ("OSError: [Errno 28] No space left on device", "8 GiB"),
        ("KeyError: 'version'", "ask for another version"),
    ],
)
def test_the_line_to_add(said: str, line: str) -> None:
    assert line in advice(f"some lines\n{said}\nmore", "thing", "python3.11-dev")


def test_a_file_that_is_not_there_is_no_compiler() -> None:
    assert "g++" not in advice(
        "FileNotFoundError: [Errno 2] No such file or directory: 'README.md'", "a", "3.11"
    )


def test_old_setuptools() -> None:
    assert wants_old_setuptools("ModuleNotFoundError: No module named 'pkg_resources'")
    assert not wants_old_setuptools("ModuleNotFoundError: No module named 'numpy'")
