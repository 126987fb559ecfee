"""What a locked package compiles when a program runs, and whether the image has what that takes. Pure."""

from __future__ import annotations

import re

from .model import Lock

_COMPILE = {
    "triton": "torch.compile and Triton kernels",  # a launcher in C for each kernel, with Python.h
    "ninja": "torch.utils.cpp_extension",  # what requires it at run time builds extensions then
}
"""What compiles at run time: by the Python package that is locked wherever it does."""

_COMPILER = re.compile(r"g\+\+(-[0-9]+)?|clang(-[0-9]+)?|build-essential")
_CONDA_COMPILER = re.compile(r"gxx(_.+)?|clangxx(_.+)?|cxx-compiler|compilers")


def compiler_hint(lock: Lock) -> str:
    """Return what an image lacks in order to compile, and how to add it; empty where it lacks nothing.

    Of a base image it is not known what it has.
    """
    users = [use for name, use in _COMPILE.items() if name in lock.distributions]
    if not users or lock.base is not None:
        return ""
    debian = {package.name for package in lock.debian}
    headers = f"python{lock.request.python}-dev"
    lacking: dict[str, str] = {}
    if not any(map(_COMPILER.fullmatch, debian)) and not any(
        _CONDA_COMPILER.fullmatch(package.name) for package in lock.conda
    ):
        lacking["g++"] = "a C++ compiler"
    # conda's Python brings its headers, and so does a standalone build.
    if (
        lock.standalone is None
        and headers not in debian
        and not any(package.name == "python" for package in lock.conda)
    ):
        lacking[headers] = "Python's headers"
    if not lacking:
        return ""
    names = ", ".join(f'"{name}"' for name in lacking)
    return (
        f"{' and '.join(users)} need {' and '.join(lacking.values())}, which the image will not have; "
        f"if you use them, add apt = [{names}] to the request"
    )
