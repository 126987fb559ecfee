"""What a setup.py asks for, read as text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reprobuild.sources.failures import Setting, advice
from reprobuild.sources.setup_py import Script, read_script

THING = Setting(name="thing", headers="python3.11-dev", cuda="13.0")


COMPILED = frozenset({"g++", "python3.11-dev"})


FLASH = b"""
import os, ast
from packaging.version import parse
from setuptools import setup
from wheel.bdist_wheel import bdist_wheel
import torch, local
from torch.utils.cpp_extension import CUDAExtension
try:
    import maybe
except ImportError:
    pass
"""


NO_TORCH = "ModuleNotFoundError: No module named 'torch'"


def test_all_that_a_setup_py_will_ask_for_is_named_at_once() -> None:
    bare = replace(THING, script=read_script(FLASH), modules=frozenset({"local"}))
    hint = advice(NO_TORCH, bare)
    assert (
        "give --build-torch thing --build-requires thing:packaging --build-requires thing:wheel "
        "--build-cuda thing --build-env 'thing:TORCH_CUDA_ARCH_LIST=8.0;9.0' "
        "--build-apt g++ --build-apt python3.11-dev, or add to the request: "
        '[build] apt = ["g++", "python3.11-dev"]; [build.thing] torch = true, '
        'requires = ["packaging", "wheel"], cuda = true, env = { TORCH_CUDA_ARCH_LIST = "8.0;9.0" }'
    ) in hint
    there = replace(bare, has_nvcc=True, installed=frozenset({"packaging", "wheel"}), debian=COMPILED)
    assert "give --build-torch thing, or" in advice(NO_TORCH, there)


@pytest.mark.parametrize(("cuda", "words"), [("12.8", "for CUDA 12.8"), ("cpu", "")])
def test_where_there_is_no_nvcc(cuda: str, words: str) -> None:
    """What makes CUDA extensions may do without them, where the request is for the CPU."""
    hint = advice(NO_TORCH, replace(THING, cuda=cuda, script=read_script(FLASH)))
    assert "--build-cuda" not in hint
    assert ("its CUDA code cannot be compiled" in hint) == bool(words)
    assert words in hint
    asked = advice("OSError: CUDA_HOME environment variable is not set.", replace(THING, cuda=cuda))
    assert "NVIDIA's wheels have nvcc from CUDA 13.0 on" in asked
    assert "--package 'thing @ https://...'" in asked


@pytest.mark.parametrize("text", [None, b"", b"\xff", b"print 1", b"(" * 5000, b"\0"])
def test_a_setup_py_that_says_nothing(text: bytes | None) -> None:
    assert read_script(text) == Script()
