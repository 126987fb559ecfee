"""CUDA's packages in a file that is locked for the CPU; test_resolve_pytorch.py locks one."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.imports.cuda_parts import line_on_cuda_parts, without_cuda_parts
from reprobuild.imports.recognize import read_import


def left(text: str, folder: Path, *loosen: str) -> tuple[list[str], str]:
    """Return the packages that stay, and the line."""
    file = folder / "requirements.txt"
    file.write_text(text)
    found = read_import(file, loosen=loosen)
    return [str(each) for each in without_cuda_parts(found).requirements], line_on_cuda_parts(found)


@pytest.mark.parametrize(
    "name",
    [
        *("nvidia-cublas-cu12", "nvidia_cuda_runtime", "nvidia-cusparselt-cu13", "nvidia-nvshmem-cu12"),
        *("nvidia-cuda-nvrtc-cu11", "cuda-toolkit"),
    ],
)
def test_what_torch_alone_needs_is_left_out_and_named(tmp_path: Path, name: str) -> None:
    kept, line = left(f"torch==2.4.1\n{name}==1\n", tmp_path, name)
    assert kept == ["torch==2.4.1"]
    assert line.endswith(f"left out, since torch for the CPU does not require it: {name.replace('_', '-')}")


def test_others_of_nvidia_stay(tmp_path: Path) -> None:
    assert left("nvidia-ml-py==12\nnumpy==1\n", tmp_path, "nvidia-*") == (["nvidia-ml-py", "numpy==1"], "")


def test_what_is_not_loosened_stays(tmp_path: Path) -> None:
    assert left("nvidia-nccl-cu12==2\nnumpy==1\n", tmp_path, "numpy") == (
        ["nvidia-nccl-cu12==2", "numpy"],
        "",
    )
