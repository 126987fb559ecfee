"""Names that the self-test and the host share."""

from __future__ import annotations

import pytest

import reprobuild.in_image.selftest.command_line  # noqa: F401 -- the checks are registered
from reprobuild.in_image.selftest.names import CUDA_LIBRARY


@pytest.mark.parametrize(
    ("file", "library"),
    [
        ("libcudart.so.12", "cudart"),
        ("libcudart-9335f6a2.so.12", "cudart"),
        ("libcublasLt.so.12", "cublasLt"),
        ("libcudnn_engines_precompiled.so.9", "cudnn_engines_precompiled"),
        ("libnvrtc.so.12", "nvrtc"),
        ("libnvrtc-builtins.so.12.1", "nvrtc-builtins"),
        ("libnccl.so.2", "nccl"),
        ("libcufftw.so.11", "cufftw"),
        ("libnvToolsExt.so.1", "nvToolsExt"),
        ("libnvshmem_host.so.3", "nvshmem_host"),
        ("libcudnn.so.9", "cudnn"),
        ("libcuda.so.550.54", None),  # the driver's come from the host
        ("libnvidia-ptxjitcompiler.so.1", None),
        ("libtorch_cuda.so", None),
    ],
)
def test_a_cuda_library_is_told_by_its_file(file: str, library: str | None) -> None:
    match = CUDA_LIBRARY.fullmatch(file)
    assert (match[1] if match else None) == library
