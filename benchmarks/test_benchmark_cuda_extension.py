"""A `CUDAExtension` of PyTorch: compiled by nvcc of NVIDIA's wheels, linked, imported in its image.

PyTorch for CUDA 13 is fetched, 3 GB, and unpacked to an image of 6 GB. No GPU is needed.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from conftest import needs
from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.pipeline.workspace import read_lock
from support.artifacts import fetch_once
from support.bench import Bench
from support.sdists import tar_gz

FILES = {
    "setup.py": """
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension
setup(
    name="twice-kernel",
    version="1.0",
    packages=["twice_kernel"],
    ext_modules=[CUDAExtension("twice_kernel._C", ["binding.cpp", "kernel.cu"])],
    cmdclass={"build_ext": BuildExtension},
)
""",
    "twice_kernel/__init__.py": "import torch\nfrom twice_kernel._C import on_cpu, on_gpu\n",
    "binding.cpp": """
#include <torch/extension.h>
at::Tensor on_gpu(at::Tensor x);
at::Tensor on_cpu(const at::Tensor& x) { return x * 2; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("on_cpu", &on_cpu); m.def("on_gpu", &on_gpu); }
""",
    "kernel.cu": """
#include <ATen/ATen.h>
#include <c10/cuda/CUDAException.h>
__global__ void twice(float* x, int64_t n) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}
at::Tensor on_gpu(at::Tensor x) {
  twice<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), x.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return x;
}
""",
}
REQUEST = """
name = "kernel"
cuda = "13.0"
packages = ["twice-kernel"]
platforms = ["linux/amd64"]
[build]
apt = ["g++", "python3.11-dev"]
[build.twice-kernel]
torch = true
cuda = true
env = { TORCH_CUDA_ARCH_LIST = "8.0;9.0" }
"""


def test_a_cuda_extension_is_imported_in_its_image(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for program in ("mmdebstrap", "crun"):
        needs(program)
    bench = Bench(tmp_path, "")
    bench.run("lock", "--cuda", "13.0", "--name", "plain")
    fetch_once(read_lock(tmp_path / "envs/pylock.plain.toml"), Store(Home(bench.home)), tmp_path_factory)
    (tmp_path / "links").mkdir()
    body = tar_gz({f"twice_kernel-1.0/{path}": text.encode() for path, text in FILES.items()})
    (tmp_path / "links/twice_kernel-1.0.tar.gz").write_bytes(body)
    links = {"UV_FIND_LINKS": str(tmp_path / "links")}
    (tmp_path / "envs/kernel.toml").write_text(REQUEST)
    path = tmp_path / "envs/pylock.kernel.toml"
    bench.run("lock", "kernel", env=links)
    first = path.read_bytes()
    # Locked anew, by two more builds, on a home that knows of none.
    path.unlink()
    shutil.rmtree(bench.home / "built")
    bench.run("lock", "kernel", env=links)
    assert path.read_bytes() == first
    built = json.loads(bench.run("image", "envs/pylock.kernel.toml", "--json", "--gpu", "off", env=links)[0])
    # Its self-test has imported the package, whose object links libcudart and libtorch_cuda.
    assert built["report"]["verdict"] == "passed"
