"""Names that the host's side knows too: it imports this module, and no other of the program."""

from __future__ import annotations

import re

FORBIDDEN = (
    "PYTORCH_TUNABLEOP_ENABLED",
    "PYTORCH_TUNABLEOP_TUNING",
    "TORCHINDUCTOR_MAX_AUTOTUNE",
    "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM",
    "TORCHINDUCTOR_MAX_AUTOTUNE_POINTWISE",
    "TORCHINDUCTOR_USE_FAST_MATH",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_BLAS_PREFER_CUBLASLT",
    "TORCH_CUDNN_USE_HEURISTIC_MODE_B",
    "TORCH_CUDNN_V8_API_DISABLED",
    "TORCH_LINALG_PREFER_CUSOLVER",
    "TORCH_MKLDNN_MATMUL_MIN_DIM",
    "TORCH_MKLDNN_MATMUL_MIN_SIZE",
)
"""Variables that change an algorithm or its numbers, in torch 2.4 to 2.13; none may be set."""

CUDA_LIBRARY = re.compile(
    r"lib(cudart|cublas|cublasLt|cudnn\w*|cufft|cufftw|cufile|cufile_rdma|cupti|curand|cusolver|cusolverMg"
    r"|cusparse|cusparseLt|nccl|nvblas|nvJitLink|nvrtc|nvrtc-builtins|nvshmem\w*|nvToolsExt)"
    r"(?:-[0-9a-f]{4,})?\.so(?:\.[0-9.]+)?"
)
"""The file names of CUDA's libraries, those that torch's wheels bundle too (``libcudart-9335f6a2.so.12``).

The first group is the library. The driver's own (``libcuda.so``) are not among them: the host brings them.
"""
